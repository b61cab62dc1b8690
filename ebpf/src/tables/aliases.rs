//! The map of sockets' own ports of containers, as the stages see it.

use crate::abi::{Alias, AliasKey};

/// What is a container's port for one socket of the node only (`ALIASES`).
pub trait Aliases {
    /// An alias.
    fn alias(&self, key: &AliasKey) -> Option<Alias>;

    /// Writes one where none is; false if there is one.
    fn claim_alias(&self, key: &AliasKey, alias: &Alias) -> bool;

    /// Overwrites one.
    fn renew_alias(&self, key: &AliasKey, alias: &Alias);

    /// Removes it.
    fn forget_alias(&self, key: &AliasKey);
}

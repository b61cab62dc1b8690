//! What the kernel's table of ours was like when it was set.

use nix::libc;
use shunt_netlink::NetlinkError;
use shunt_netlink::netfilter::{BaseChain, base_chains};
use shunt_netlink::nf_tables::{TableRule, generation, rules_of};

use super::batch::Contents;
use super::names::TABLE;

/// The table's chains and rules, as the kernel lists them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Snapshot {
    chains: Vec<BaseChain>,
    rules: Vec<TableRule>,
}

impl Snapshot {
    /// Reads the table of this namespace; an empty one where there is none.
    ///
    /// # Errors
    /// Netlink's.
    pub(super) fn read() -> Result<Self, NetlinkError> {
        let mut chains = base_chains()?;
        chains.retain(|chain| chain.table == TABLE && i32::from(chain.family) == libc::NFPROTO_INET);
        Ok(Self { chains, rules: rules_of(TABLE)? })
    }

    fn contents(&self) -> Contents {
        Contents { chains: self.chains.len(), rules: self.rules.len() }
    }
}

/// Whether an earlier agent's table opens host ports, or carries connections to some.
///
/// # Errors
/// Netlink's.
pub fn keeps_translating() -> Result<bool, NetlinkError> {
    let is_way_in = |chain: &BaseChain| chain.hook == libc::NF_INET_PRE_ROUTING as u32;
    Ok(Snapshot::read()?.chains.iter().any(is_way_in))
}

/// The table as it was set, and the last generation of the namespace's rules in which it was so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watched {
    /// None where somebody has changed it before it was listed.
    was: Option<Snapshot>,
    generation: Option<u32>,
}

impl Watched {
    /// Takes the table as it is now for what it is to be, if it has as much as was `set`: somebody may flush it at once.
    ///
    /// # Errors
    /// Netlink's.
    pub fn of(set: Contents) -> Result<Self, NetlinkError> {
        // Read first: what is changed meanwhile is looked at again.
        let generation = generation();
        let now = Snapshot::read()?;
        let is_as_set = now.contents() == set;
        Ok(Self { was: is_as_set.then_some(now), generation: generation.filter(|_| is_as_set) })
    }

    /// Whether the table is as it was. Nothing is listed while nobody has committed a transaction.
    ///
    /// # Errors
    /// Netlink's.
    pub fn is_unchanged(&mut self) -> Result<bool, NetlinkError> {
        let generation = generation();
        if generation.is_some() && generation == self.generation {
            return Ok(true);
        }
        let is_unchanged = Some(Snapshot::read()?) == self.was;
        if is_unchanged {
            self.generation = generation;
        }
        Ok(is_unchanged)
    }
}

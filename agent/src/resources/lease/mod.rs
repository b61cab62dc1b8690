//! Leases of containers' addresses, where the IPAM keeps host-local's files.

mod files;
mod repair;
mod state;

pub(crate) use self::files::{admit_leases, amiss, free};
pub(crate) use self::state::Leases;

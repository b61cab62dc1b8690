//! Leases of containers' addresses, where the IPAM keeps host-local's files.

mod applied;
mod directories;
mod files;
mod state;

pub(crate) use self::applied::Lease;
pub(crate) use self::files::{Amiss, drop_relative_lease_dir, free};
pub(crate) use self::state::Leases;

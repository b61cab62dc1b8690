//! A bridge and network namespaces in which `bridge` makes masquerading rules for containers that it did not make.
//!
//! The rules know the container by its network, id and address alone. So an ADD with these, in a namespace of its own and on a bridge of its
//! own, makes the rules that the DEL of the container itself will find.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::process;

use std::os::fd::AsRawFd as _;

use nix::sched::{CloneFlags, unshare};
use shunt_netlink::link::{Selector, delete_link};
use shunt_netlink::namespace::apart;
use shunt_netlink::{Connection, NetlinkError, unless};

/// The bridge's name.
pub(super) const BRIDGE: &str = "shunt-handover";

/// A network namespace that goes with its value.
#[derive(Debug)]
pub(super) struct Scratch(File);

impl Scratch {
    /// Makes one.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn make() -> io::Result<Self> {
        let file = apart("scratch", || {
            unshare(CloneFlags::CLONE_NEWNET)?;
            File::open("/proc/thread-self/ns/net")
        })??;
        Ok(Self(file))
    }

    /// A path to it that every process can open.
    pub(super) fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/fd/{}", process::id(), self.0.as_raw_fd()))
    }
}

/// Removes the bridge.
///
/// # Errors
/// Netlink's.
pub(super) fn remove_bridge() -> Result<(), NetlinkError> {
    let mut connection = Connection::open()?;
    unless(connection.run(delete_link(Selector::Name(BRIDGE))), NetlinkError::is_missing)
}

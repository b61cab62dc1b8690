//! What an earlier agent wrote down, read before anybody can ask this one.
//!
//! Containers that are gone for certain, those of an earlier boot, and those of which neither link nor namespace is left, held addresses
//! that nobody else would free for a while: their leases are freed here. That has to be over before the socket is there. An ADD
//! reaches for the agent before it takes a lease, so none that may yet succeed holds one at this moment; later, a lease with
//! the same words could be that of the same container, started again. What a runtime still has to say of them, DEL or GC, finds
//! nothing left to free.

use std::fs;
use std::io;
use std::path::Path;

use shunt_agent_api::BridgePort;
use shunt_netlink::Connection;
use shunt_netlink::link::{Selector, link};

use super::leases::free;
use crate::state::{Loaded, Store, StoreError};

/// A state directory that is this agent's now, and what is in it.
#[derive(Debug)]
pub struct PreviousState {
    pub(super) store: Store,
    pub(super) loaded: Loaded,
    /// How many leases of the dead were freed.
    pub(super) leases: usize,
}

impl PreviousState {
    /// Takes the state directory, reads it, and frees the leases of containers that are gone. To be called in the agent's
    /// network namespace, before it listens.
    ///
    /// # Errors
    /// [`StoreError`]; never because of a lease.
    pub fn take(state_dir: &Path) -> Result<Self, StoreError> {
        let mut store = Store::open(state_dir)?;
        let loaded = store.load()?;
        let present = loaded.records.iter().map(|record| &record.port);
        let dead: Vec<_> = loaded.outlived.iter().chain(present.filter(|port| is_dead(port))).collect();
        let leases = free(&dead);
        // Last, so that an agent that is killed meanwhile leaves it to the next one.
        for port in &loaded.outlived {
            if let Err(error) = store.remove(&port.key) {
                tracing::warn!(key = %port.key, %error, "cannot remove the state file");
            }
        }
        Ok(Self { store, loaded, leases })
    }
}

/// Whether a container of this boot is gone: no link, and no namespace under the name that the runtime gave it. Where only
/// one of them is gone somebody may be at work, and the runtime will say what is to become of the lease.
fn is_dead(port: &BridgePort) -> bool {
    let gone = |path: &str| matches!(fs::symlink_metadata(path), Err(error) if error.kind() == io::ErrorKind::NotFound);
    if port.lease_dir.is_none()
        || !port.netns.as_deref().is_some_and(|path| path.starts_with('/') && gone(path))
    {
        return false;
    }
    let link =
        Connection::open().and_then(|mut connection| connection.get(link(Selector::Index(port.host.index))));
    link.is_ok_and(|link| link.is_none_or(|link| link.name != port.host.name))
}

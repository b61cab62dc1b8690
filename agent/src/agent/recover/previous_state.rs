//! Reads the state directory and frees the leases of dead containers, before the agent listens.
//!
//! A container is dead if its state file is of an earlier boot, or if neither its link nor its namespace exists. Its lease has to be freed
//! before the socket exists: an ADD contacts the agent before it takes a lease, so no lease of a running ADD can be freed here. Later, an
//! equal lease may belong to the same container, started again.

use std::fs;
use std::io;
use std::path::Path;

use shunt_agent_api::BridgePort;
use shunt_netlink::Connection;
use shunt_netlink::link::{Selector, link};

use crate::resources::lease::free;
use crate::state::{Loaded, Store, StoreError};

/// The locked state directory and its content.
#[derive(Debug)]
pub struct PreviousState {
    pub(crate) store: Store,
    pub(crate) loaded: Loaded,
    /// How many leases were freed.
    pub(crate) leases: usize,
}

impl PreviousState {
    /// Locks and reads the state directory, and frees the leases of dead containers. Call it in the agent's
    /// network namespace, before the agent listens.
    ///
    /// # Errors
    /// [`StoreError`]; never because of a lease.
    pub fn take(state_dir: &Path) -> Result<Self, StoreError> {
        let mut store = Store::open(state_dir)?;
        let loaded = store.load()?;
        let present = loaded.records.iter().map(|record| &record.port);
        let dead: Vec<_> = loaded.outlived.iter().chain(present.filter(|port| is_dead(port))).collect();
        let leases = free(&dead);
        // Last, so that the next agent repeats this if it is interrupted.
        for port in &loaded.outlived {
            if let Err(error) = store.remove(&port.key) {
                tracing::warn!(key = %port.key, %error, "cannot remove the state file");
            }
        }
        Ok(Self { store, loaded, leases })
    }
}

/// Whether a container of this boot is dead: neither its link nor its namespace's file exists. If only one is
/// missing, an ADD or DEL may be running, and the runtime decides about the lease.
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

//! Checks the leases of attachments whose IPAM uses host-local's files (`BridgePort::lease_dir`).
//!
//! A missing lease of a living container is restored: otherwise its address would be given to a second container. A lease that another
//! container holds is reported and kept. Both happen with a delay, because a DEL without an agent frees the lease, and its link may be
//! gone without this agent knowing it yet. A lease that is restored by mistake is freed with the link.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use shunt_agent_api::{AttachmentKey, BridgePort};
use shunt_leases::{Directory, Error, Identity, LockError, Record, Standing, is_usable};

use crate::failpoints::{self, Failpoint};

/// How long a start may wait for locks, in total.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long a lease has to be missing before it is restored.
pub(super) const RESPITE: Duration = Duration::from_secs(2);

/// A fault of an attachment's leases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Amiss {
    /// The lease is missing.
    Missing(IpAddr),
    /// Another container holds the lease.
    Taken(IpAddr, String),
    /// The lease can neither be read nor restored.
    Unknown(String),
}

impl fmt::Display for Amiss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(address) => write!(f, "the lease of its address {address} is missing"),
            Self::Taken(address, holder) => write!(f, "its address {address} is leased to {holder}"),
            Self::Unknown(why) => write!(f, "its leases are not known: {why}"),
        }
    }
}

/// Drops a lease directory that is not an absolute path; the request is not refused for it.
pub(crate) fn drop_relative_lease_dir(port: &mut BridgePort) {
    if let Some(path) = port.lease_dir.take_if(|path| !is_usable(path)) {
        tracing::warn!(key = %port.key, path = %path.display(), "leases are not checked: the path is not absolute");
    }
}

/// What is wrong with an attachment's leases; all of them are there where none are known.
pub(crate) fn amiss(port: &BridgePort) -> Option<Amiss> {
    let data_dir = port.lease_dir.as_deref()?;
    let attachment = record(&port.key);
    match Directory::open(data_dir, &port.key.network) {
        Err(error) => Some(Amiss::Unknown(error.to_string())),
        Ok(None) => port.ips.first().map(|address| Amiss::Missing(*address)),
        Ok(Some(directory)) => {
            port.ips.iter().find_map(|address| match directory.standing(*address, attachment) {
                Standing::Held => None,
                Standing::Free => Some(Amiss::Missing(*address)),
                Standing::Taken(holder) => Some(Amiss::Taken(*address, holder)),
            })
        }
    }
}

/// Frees and logs the leases of dead containers. Returns their number.
pub(crate) fn free(dead: &[&BridgePort]) -> usize {
    let deadline = Instant::now() + PATIENCE;
    let mut networks: BTreeMap<(&Path, &str), Vec<&BridgePort>> = BTreeMap::new();
    for port in dead {
        if let Some(data_dir) = port.lease_dir.as_deref() {
            networks.entry((data_dir, &port.key.network)).or_default().push(port);
        }
    }
    let mut freed = 0;
    for ((data_dir, network), ports) in networks {
        match free_in(data_dir, network, &ports, deadline) {
            Ok(count) => freed += count,
            Err(error) => {
                let left = "leases of containers that are gone are left to DEL and GC";
                tracing::warn!(network, containers = ports.len(), %error, "{left}");
            }
        }
    }
    freed
}

fn free_in(data_dir: &Path, network: &str, ports: &[&BridgePort], deadline: Instant) -> Result<usize, Error> {
    let Some(directory) = Directory::open(data_dir, network)? else { return Ok(0) };
    let store = directory.lock(deadline)?;
    let mut freed = 0;
    for port in ports {
        for address in &port.ips {
            let passed = failpoints::pass(Failpoint::Files);
            let passed = passed.map_err(|source| Error::Io { path: data_dir.to_owned(), source });
            match passed.and_then(|()| store.release_of(*address, record(&port.key))) {
                Ok(Standing::Held) => {
                    freed += 1;
                    tracing::info!(key = %port.key, %address, "freed the lease: the container is gone");
                }
                Ok(Standing::Free) => {}
                Ok(Standing::Taken(holder)) => {
                    tracing::debug!(key = %port.key, %address, holder, "kept a lease that another container holds");
                }
                Err(error) => tracing::warn!(key = %port.key, %address, %error, "cannot free the lease"),
            }
        }
    }
    Ok(freed)
}

/// Whether an IPAM has the network's leases locked at this moment.
pub(super) fn is_locked(port: &BridgePort) -> bool {
    let Some(Ok(Some(directory))) =
        port.lease_dir.as_deref().map(|data_dir| Directory::open(data_dir, &port.key.network))
    else {
        return false;
    };
    matches!(directory.lock(Instant::now()), Err(Error::Lock(LockError::Held { .. })))
}

/// Restores missing leases.
pub(super) fn put_back(port: &BridgePort, data_dir: &Path) -> Result<Vec<(IpAddr, Identity)>, Error> {
    failpoints::pass(Failpoint::Files).map_err(|source| Error::Io { path: data_dir.to_owned(), source })?;
    // The lock is held by an IPAM: the next check is soon enough.
    let store = Directory::open_or_create(data_dir, &port.key.network)?.lock(Instant::now())?;
    let mut made = Vec::new();
    for address in &port.ips {
        if store.reserve(*address, record(&port.key))? {
            made.extend(store.identity(*address).map(|identity| (*address, identity)));
        }
    }
    Ok(made)
}

/// Removes a restored lease if the file is still the agent's.
pub(super) fn take_back(
    port: &BridgePort,
    data_dir: &Path,
    made: &[(IpAddr, Identity)],
) -> Result<(), Error> {
    let Some(directory) = Directory::open(data_dir, &port.key.network)? else { return Ok(()) };
    let store = directory.lock(Instant::now() + RESPITE / 20)?;
    for (address, identity) in made {
        if store.identity(*address).as_ref() == Some(identity) {
            store.release_of(*address, record(&port.key))?;
        }
    }
    Ok(())
}

fn record(key: &AttachmentKey) -> Record<'_> {
    Record::of(&key.container, &key.ifname)
}

//! Checks the leases of attachments whose IPAM uses host-local's files (`BridgePort::lease_dir`).
//!
//! A missing lease of a living container is restored: otherwise its address would be given to a second container. A lease that another
//! container holds is reported and kept. Both happen with a delay, because a DEL without an agent frees the lease before it deletes the
//! link. A lease that is restored by mistake is freed with the link.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use shunt_agent_api::{AttachmentKey, BridgePort, EventKind};
use shunt_leases::{Directory, Error, Identity, Record, Standing, is_usable};

use super::Agent;
use crate::failpoints::{self, Failpoint};

/// How long a start may wait for locks, in total.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long a lease has to be missing before it is restored.
const RESPITE: Duration = Duration::from_secs(2);

/// Attachments whose leases are checked per second, at least; a tenth of all otherwise.
const AT_LEAST: usize = 16;

/// State of leases between two checks.
#[derive(Debug, Default)]
pub(super) struct Leases {
    /// When a lease was first found missing.
    missing: BTreeMap<AttachmentKey, Instant>,
    /// Faults that were reported.
    amiss: BTreeMap<AttachmentKey, Amiss>,
    /// Restored files: the agent removes them if the container disappears without a DEL.
    put_back: BTreeMap<AttachmentKey, Vec<(IpAddr, Identity)>>,
    /// The attachment that was checked last.
    last: Option<AttachmentKey>,
}

/// A fault of an attachment's leases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Amiss {
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
pub(super) fn admit_leases(port: &mut BridgePort) {
    if let Some(path) = port.lease_dir.take_if(|path| !is_usable(path)) {
        tracing::warn!(key = %port.key, path = %path.display(), "leases are not checked: the path is not absolute");
    }
}

/// What is wrong with an attachment's leases; all of them are there where none are known.
pub(super) fn amiss(port: &BridgePort) -> Option<Amiss> {
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
pub(super) fn free(dead: &[&BridgePort]) -> usize {
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

/// Restores missing leases.
fn put_back(port: &BridgePort, data_dir: &Path) -> Result<Vec<(IpAddr, Identity)>, Error> {
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
fn take_back(port: &BridgePort, data_dir: &Path, made: &[(IpAddr, Identity)]) -> Result<(), Error> {
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

impl Leases {
    /// An attachment is gone.
    pub(super) fn forget(&mut self, port: &BridgePort) {
        self.missing.remove(&port.key);
        self.amiss.remove(&port.key);
        if let (Some(made), Some(data_dir)) = (self.put_back.remove(&port.key), &port.lease_dir)
            && let Err(error) = take_back(port, data_dir, &made)
        {
            tracing::warn!(key = %port.key, %error, "cannot free a restored lease: DEL or GC will");
        }
    }

    /// What an operator should know.
    pub(super) fn warnings(&self) -> impl Iterator<Item = String> {
        self.amiss.iter().map(|(key, amiss)| format!("{key}: {amiss}"))
    }
}

impl Agent {
    /// Checks the leases of some attachments, and of all with a missing one.
    pub(super) fn repair_leases(&mut self) {
        if self.repairs.is_off() {
            return;
        }
        let turn = self.registry.len().min(AT_LEAST.max(self.registry.len() / 10));
        let mut keys: Vec<_> = self.leases.missing.keys().chain(self.leases.amiss.keys()).cloned().collect();
        for _ in 0..turn {
            self.leases.last = self.registry.after(self.leases.last.as_ref()).cloned();
            keys.extend(self.leases.last.clone());
        }
        keys.sort();
        keys.dedup();
        for key in keys {
            if let Some(port) = self.registry.get(&key).map(|attachment| attachment.port.clone()) {
                self.repair_lease(&port);
            }
        }
    }

    fn repair_lease(&mut self, port: &BridgePort) {
        let (key, found) = (&port.key, amiss(port));
        let Some(Amiss::Missing(address)) = found else {
            self.leases.missing.remove(key);
            return self.tell_lease(port, found);
        };
        let now = failpoints::now();
        let since = *self.leases.missing.entry(key.clone()).or_insert(now);
        if now.duration_since(since) < RESPITE || !matches!(self.is_gone(port), Ok(false)) {
            return;
        }
        let Some(data_dir) = &port.lease_dir else { return };
        match put_back(port, data_dir) {
            Ok(made) => {
                let wrong = Amiss::Missing(address).to_string();
                self.leases.missing.remove(key);
                self.leases.put_back.entry(key.clone()).or_default().extend(made);
                self.repairs.count += 1;
                tracing::warn!(what = %key, wrong, "repaired");
                self.events.tell(EventKind::Repair, Some(key), &port.host.name, wrong);
                self.tell_lease(port, amiss(port));
            }
            Err(Error::Locked(_)) => {}
            Err(error) => {
                let why = format!("{}, and it cannot be put back: {error}", Amiss::Missing(address));
                self.tell_lease(port, Some(Amiss::Unknown(why)));
            }
        }
    }

    /// Logs a fault once and keeps it for the status.
    fn tell_lease(&mut self, port: &BridgePort, amiss: Option<Amiss>) {
        let Some(amiss) = amiss else { return drop(self.leases.amiss.remove(&port.key)) };
        if self.leases.amiss.get(&port.key) == Some(&amiss) {
            return;
        }
        tracing::error!(key = %port.key, %amiss, "the container's address is not leased to it alone");
        if matches!(amiss, Amiss::Taken(..)) {
            self.events.tell(EventKind::LeaseTaken, Some(&port.key), &port.host.name, amiss.to_string());
        }
        self.leases.amiss.insert(port.key.clone(), amiss);
    }
}

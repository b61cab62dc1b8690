//! Repairs the leases of living containers.

use shunt_agent_api::{BridgePort, EventKind};
use shunt_leases::{Error, LockError};

use super::files::{Amiss, RESPITE, amiss, put_back};
use crate::failpoints;
use crate::resources::Node;

/// Attachments whose leases are checked per second, at least; a tenth of all otherwise.
const AT_LEAST: usize = 16;

impl Node {
    /// Checks the leases of some attachments, and of all with a missing one.
    pub(crate) fn repair_leases(&mut self) {
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
            Err(Error::Lock(LockError::Held { .. })) => {}
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

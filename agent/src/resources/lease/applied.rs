//! Puts back a lease that is missing of a living container's; a lease that another container has is only told.

use shunt_agent_api::{AttachmentKey, BridgePort, EventKind};

use super::files::{Amiss, amiss, put_back};
use crate::resources::Gravity;
use crate::resources::reconcile::{Cause, Resource};
use crate::resources::{Finding, Node, Refusal};

/// The leases of one attachment. The IPAM makes them.
pub(crate) struct Lease(BridgePort);

impl Lease {
    /// Those of every attachment.
    pub(crate) fn all(node: &Node) -> Vec<Self> {
        node.registry.attachments().map(|attachment| Self(attachment.port.clone())).collect()
    }

    /// Those whose turn it is.
    pub(crate) fn in_turn(node: &mut Node) -> Vec<Self> {
        let keys = node.leases.in_turn(&node.registry);
        let ports = keys.iter().filter_map(|key| node.registry.get(key));
        ports.map(|attachment| Self(attachment.port.clone())).collect()
    }
}

impl Resource for Lease {
    fn name(&self) -> String {
        self.0.key.to_string()
    }

    fn gravity(&self) -> Gravity {
        Gravity::Warning
    }

    fn ifname(&self) -> &str {
        &self.0.host.name
    }

    fn key(&self) -> Option<&AttachmentKey> {
        Some(&self.0.key)
    }

    fn observe(&self, _: &mut Node) -> Result<Vec<Finding>, Refusal> {
        Ok(amiss(&self.0).into_iter().map(Finding::Lease).collect())
    }

    fn observe_patiently(&self, node: &mut Node) -> Result<Vec<Finding>, Refusal> {
        let found = amiss(&self.0);
        node.leases.note(&self.0.key, found.as_ref());
        // A DEL frees the lease, and the link may be gone without this agent knowing it yet.
        let is_patient = matches!(found, Some(Amiss::Missing(_)))
            && !(node.leases.is_missing_for_long(&self.0) && matches!(node.is_gone(&self.0), Ok(false)));
        Ok(found.filter(|_| !is_patient).into_iter().map(Finding::Lease).collect())
    }

    fn apply(&self, node: &mut Node, cause: Cause<'_>) -> Result<(), Refusal> {
        let Cause::Repair(findings) = cause else { return Ok(()) };
        for finding in findings {
            match finding {
                Finding::Lease(Amiss::Missing(_)) => node.put_back_leases(&self.0)?,
                Finding::Lease(Amiss::Taken(..)) => node.tell_taken(self, finding),
                _ => {}
            }
        }
        Ok(())
    }
}

impl Node {
    /// Restores missing leases, and remembers them.
    fn put_back_leases(&mut self, port: &BridgePort) -> Result<(), Refusal> {
        let Some(data_dir) = &port.lease_dir else { return Ok(()) };
        let made = put_back(port, data_dir)?;
        self.leases.note(&port.key, None);
        self.leases.put_back.entry(port.key.clone()).or_default().extend(made);
        Ok(())
    }

    /// Sends an event of a lease that another container has, once.
    fn tell_taken(&self, lease: &Lease, finding: &Finding) {
        let (port, wrong) = (&lease.0, finding.to_string());
        let known = self.repairs.faults.get(&(lease.gravity(), lease.name()));
        if known.is_none_or(|known| !known.contains(&wrong)) {
            self.events.tell_of(EventKind::LeaseTaken, port, wrong);
        }
    }
}

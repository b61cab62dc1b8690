//! Makes a deleted bridge anew, and attaches its containers to it by the functions that attach every other.

use std::collections::HashSet;

use shunt_agent_api::{AttachmentKey, BridgePort, Interface};
use shunt_netlink::link::Link;

use super::state::Orphan;
use crate::kernel::KernelError;
use crate::resources::change::Change;
use crate::resources::reconcile::{Cause, Resource};
use crate::resources::validation;
use crate::resources::{Finding, Node, Refusal};

/// Why a container cannot be reattached.
#[derive(Debug, thiserror::Error)]
enum OrphanError {
    #[error("it kept VLANs apart, and which port was in which is not known: make it anew")]
    Vlans,
    #[error("it ran a spanning tree, without which frames may go round and round: make it anew")]
    Tree,
    #[error("a link that is no bridge has its name")]
    Foreign,
    #[error(transparent)]
    Kernel(#[from] KernelError),
    #[error(transparent)]
    Refused(#[from] Refusal),
}

impl Resource for Orphan {
    fn name(&self) -> String {
        self.port.key.to_string()
    }

    fn ifname(&self) -> &str {
        &self.port.host.name
    }

    fn key(&self) -> Option<&AttachmentKey> {
        Some(&self.port.key)
    }

    fn observe(&self, node: &mut Node) -> Result<Vec<Finding>, Refusal> {
        let is_orphan = node.orphaned().any(|key| *key == self.port.key);
        Ok(if is_orphan { vec![Finding::Bridge(self.bridge.name.clone())] } else { Vec::new() })
    }

    fn apply(&self, node: &mut Node, _: Cause<'_>) -> Result<(), Refusal> {
        node.reattach(self)
            .map_err(|why| Refusal::BridgeDeleted { bridge: self.bridge.name.clone(), why: why.to_string() })
    }
}

impl Node {
    fn reattach(&mut self, orphan: &Orphan) -> Result<(), OrphanError> {
        let bridge = self.bridge_anew(&orphan.bridge)?;
        let (change, key) = (Change::begin("attach"), orphan.port.key.clone());
        let mut port = orphan.port.clone();
        port.bridge.index = bridge.index;
        let place = format!("{} on {}", port.host.name, bridge.name);
        let served = self.establish_anew(port, &bridge).and_then(|()| self.serve_anew(orphan, &key));
        if let Err(error) = served {
            if orphan.port.is_restricted() {
                self.leave_guarded(&key);
            }
            self.take_out(&key, "undone");
            self.repairs.in_service.remove(&orphan.port.host.index);
            if !self.store.holds(&orphan.port) {
                self.store.write(&orphan.port).map_err(Refusal::from)?;
            }
            return Err(error.into());
        }
        self.orphans.retain(|other| other.port.key != key);
        change.made(&key, place);
        Ok(())
    }

    /// The bridge, made like the one that was deleted where nobody has.
    fn bridge_anew(&mut self, like: &Link) -> Result<Link, OrphanError> {
        if let Some(bridge) = self.kernel.bridge_named(&like.name)? {
            return Ok(bridge);
        }
        if like.bridging.filters_vlans {
            return Err(OrphanError::Vlans);
        }
        if like.bridging.spans_tree {
            return Err(OrphanError::Tree);
        }
        self.kernel.make_bridge(like)?;
        self.kernel.bridge_named(&like.name)?.ok_or(OrphanError::Foreign)
    }

    fn establish_anew(&mut self, port: BridgePort, bridge: &Link) -> Result<(), Refusal> {
        let mac = validation::port(&port)?;
        let Interface { index, name } = &port.host;
        let host = self.kernel.link(*index)?.filter(|link| link.name == *name);
        let host = host.ok_or_else(|| Refusal::NoLink(port.host.clone()))?;
        self.forget_the_gone(&port, mac)?;
        self.establish(port, mac, (&host, bridge.clone()), false)
    }

    /// Has a new port do what the old one did. No packet passes before the host end is a port again, so all of the kernel's flows
    /// are known.
    fn serve_anew(&mut self, orphan: &Orphan, key: &AttachmentKey) -> Result<(), Refusal> {
        let Some(attachment) = self.registry.get(key).cloned() else {
            return Err(Refusal::NotAttached(key.clone()));
        };
        let (host, bridge) = (&attachment.port.host, &attachment.port.bridge);
        self.learn(&HashSet::from([host.index]));
        self.repairs.in_service.insert(host.index, orphan.flags);
        let lost = Finding::Master { host: host.name.clone(), bridge: bridge.name.clone() };
        attachment.apply(self, Cause::Repair(&[lost]))?;
        if let Some(link) = self.kernel.link(host.index)? {
            self.repairs.serves(&link);
        }
        let Some(bridge) = self.registry.bridge(bridge.index).cloned() else { return Ok(()) };
        match bridge.observe(self)? {
            findings if findings.is_empty() => Ok(()),
            findings => bridge.apply(self, Cause::Repair(&findings)),
        }
    }
}

//! Containers whose bridge was deleted: what is kept of them until the bridge is there again.
//!
//! Their state files are kept, so that a restarted agent continues. The agent is unhealthy until every such container is reattached or gone.

use shunt_agent_api::{AttachmentKey, BridgePort};
use shunt_netlink::bridge::PortFlags;
use shunt_netlink::link::Link;

use super::state::Orphan;
use crate::registry::port_flags;
use crate::resources::Gravity;
use crate::resources::Node;
use crate::resources::change::Change;

impl Node {
    /// Removes an attachment whose bridge was deleted; keeps what is needed to reattach it.
    pub(crate) fn orphan(&mut self, key: &AttachmentKey, bridge: &Link) {
        let Some(attachment) = self.registry.get(key).cloned() else { return };
        let flags = self.repairs.flags_of(&attachment);
        // Without a bridge the container still reaches the node: what it may not do there it cannot do.
        if attachment.is_restricted() {
            self.leave_guarded(key);
        }
        if let Some(port) = self.forget(key, "its bridge is gone") {
            if let Err(error) = self.store.write(&port) {
                tracing::warn!(%key, %error, "cannot write the state file: another agent would not reattach the container");
            }
            self.add_orphan(port, flags, bridge.clone());
        }
    }

    /// Registers a container that lost its bridge while no agent ran. Only the port's settings are known of
    /// the bridge.
    pub(crate) fn orphan_of(&mut self, port: BridgePort) {
        let flags = port_flags(&port);
        let bridge = Link { mtu: port.mtu, up: true, ..Link::named(&port.bridge.name) };
        self.add_orphan(port, flags, bridge);
    }

    fn add_orphan(&mut self, port: BridgePort, flags: PortFlags, bridge: Link) {
        tracing::warn!(key = %port.key, bridge = bridge.name, "bridge deleted");
        self.orphans.push(Orphan { port, flags, bridge });
    }

    /// Removes an orphan, if there is one, and, where it `lets_go`, its programs if its link is there.
    pub(crate) fn forget_orphan(&mut self, key: &AttachmentKey, lets_go: bool) -> Option<BridgePort> {
        let change = Change::begin("detach");
        let at = self.orphans.iter().position(|orphan| orphan.port.key == *key)?;
        let orphan = self.orphans.swap_remove(at);
        self.repairs.settle(key);
        if let Err(error) = self.store.remove(key) {
            tracing::warn!(%key, %error, "cannot remove the state file");
        }
        if lets_go && self.unattached.contains_key(&orphan.port.host.index) {
            self.let_go(orphan.port.host.index);
            for error in self.kernel.unlimit(&orphan.port, None) {
                tracing::warn!(%key, %error, "cannot remove the limit");
            }
        }
        self.return_unneeded_sizes();
        change.made(key, "it was without its bridge");
        Some(orphan.port)
    }

    /// The keys of all orphans.
    pub(crate) fn orphaned(&self) -> impl Iterator<Item = &AttachmentKey> {
        self.orphans.iter().map(|orphan| &orphan.port.key)
    }

    /// An orphan's port.
    pub(crate) fn orphaned_port(&self, key: &AttachmentKey) -> Option<&BridgePort> {
        self.orphans.iter().map(|orphan| &orphan.port).find(|port| port.key == *key)
    }

    /// The reason of each that nobody has tried to reattach yet, for the status.
    pub(crate) fn orphan_reasons(&self) -> impl Iterator<Item = String> {
        let is_untried = |orphan: &&Orphan| {
            !self.repairs.faults.contains_key(&(Gravity::Fault, orphan.port.key.to_string()))
        };
        self.orphans.iter().filter(is_untried).map(|Orphan { port, bridge, .. }| {
            format!("{}: its bridge {} was deleted: it was not made anew yet", port.key, bridge.name)
        })
    }

    /// Reattaches orphans whose bridge exists again.
    pub(crate) fn reattach_orphans(&mut self) {
        self.desired_orphans().iter().for_each(|orphan| self.reconcile(&**orphan));
        self.sweep_leftovers();
    }

    /// Removes orphans that somebody has attached meanwhile, and those whose link is gone.
    pub(crate) fn forget_those_found(&mut self) {
        for orphan in self.orphans.clone() {
            let key = &orphan.port.key;
            if self.registry.get(key).is_some() {
                self.orphans.retain(|other| other.port.key != *key);
            } else if !self.is_waiting(&orphan) {
                self.forget_orphan(key, true);
            }
        }
    }

    /// Whether its host end exists and is no port of another bridge.
    fn is_waiting(&mut self, orphan: &Orphan) -> bool {
        let host = &orphan.port.host;
        let link = self.kernel.link(host.index).ok().flatten().filter(|link| link.name == host.name);
        let is_free = self.unattached.contains_key(&host.index) || !self.is_known(host.index);
        let Some(link) = link.filter(|_| is_free) else { return false };
        let bridge = self.kernel.bridge_named(&orphan.bridge.name).ok().flatten();
        link.master.is_none() || link.master == bridge.map(|bridge| bridge.index)
    }
}

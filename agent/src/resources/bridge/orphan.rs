//! Reattaches containers whose bridge was deleted, once the bridge exists again.
//!
//! Their state files are kept, so that a restarted agent continues. The agent is unhealthy until every such container is reattached or gone.

use std::collections::HashSet;
use std::time::Instant;

use shunt_agent_api::{AttachmentKey, BridgePort, EventKind};
use shunt_netlink::bridge::PortFlags;
use shunt_netlink::link::Link;

use super::state::Orphan;
use crate::kernel::KernelError;
use crate::registry::{Attachment, port_flags};
use crate::resources::change::Change;
use crate::resources::{Node, Refusal};

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

impl Node {
    /// Removes an attachment whose bridge was deleted; keeps what is needed to reattach it.
    pub(crate) fn orphan(&mut self, key: &AttachmentKey, bridge: &Link) {
        let Some(attachment) = self.registry.get(key).cloned() else { return };
        let flags = self.repairs.flags_of(&attachment);
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
        self.orphans.push(Orphan { port, flags, bridge, why: "it was not made anew yet".to_owned() });
    }

    /// Removes an orphan, if there is one.
    pub(crate) fn forget_orphan(&mut self, key: &AttachmentKey) -> Option<BridgePort> {
        let change = Change::begin("detach");
        let at = self.orphans.iter().position(|orphan| orphan.port.key == *key)?;
        let orphan = self.orphans.swap_remove(at);
        if let Err(error) = self.store.remove(key) {
            tracing::warn!(%key, %error, "cannot remove the state file");
        }
        change.made(key, "it was without its bridge");
        Some(orphan.port)
    }

    /// The keys of all orphans.
    pub(crate) fn orphaned(&self) -> impl Iterator<Item = &AttachmentKey> {
        self.orphans.iter().map(|orphan| &orphan.port.key)
    }

    /// The reason of each, for the status.
    pub(crate) fn orphan_reasons(&self) -> impl Iterator<Item = String> {
        self.orphans.iter().map(|Orphan { port, bridge, why, .. }| {
            format!("{}: its bridge {} was deleted: {why}", port.key, bridge.name)
        })
    }

    /// Reattaches orphans whose bridge exists again, and removes those whose link is gone.
    pub(crate) fn reattach_orphans(&mut self) {
        for mut orphan in std::mem::take(&mut self.orphans) {
            let begun = Instant::now();
            let key = orphan.port.key.clone();
            if self.registry.get(&key).is_some() {
                continue;
            }
            if !self.is_waiting(&orphan) {
                // Back to the list: the removal below deletes its file, too.
                self.orphans.push(orphan);
                self.forget_orphan(&key);
                continue;
            }
            if self.repairs.is_off() {
                self.orphans.push(orphan);
                continue;
            }
            match self.put_back(&orphan) {
                Ok(()) => {
                    let wrong = format!("its bridge {} was deleted", orphan.bridge.name);
                    self.repairs.count += 1;
                    tracing::warn!(what = %key, wrong, took = ?begun.elapsed(), "repaired");
                    self.events.tell(EventKind::Repair, Some(&key), &orphan.port.host.name, wrong);
                }
                Err(error) => {
                    let why = error.to_string();
                    if orphan.why != why {
                        tracing::error!(what = %key, why, "cannot be repaired");
                    }
                    orphan.why = why;
                    self.orphans.push(orphan);
                }
            }
        }
    }

    /// Whether its host end exists and is no port of another bridge.
    fn is_waiting(&mut self, orphan: &Orphan) -> bool {
        let host = &orphan.port.host;
        let link = self.kernel.link(host.index).ok().flatten().filter(|link| link.name == host.name);
        let Some(link) = link.filter(|_| !self.is_known(host.index)) else { return false };
        let bridge = self.kernel.bridge_named(&orphan.bridge.name).ok().flatten();
        link.master.is_none() || link.master == bridge.map(|bridge| bridge.index)
    }

    fn put_back(&mut self, orphan: &Orphan) -> Result<(), OrphanError> {
        let name = &orphan.bridge.name;
        let mut bridge = self.kernel.bridge_named(name)?;
        if bridge.is_none() {
            if orphan.bridge.bridging.filters_vlans {
                return Err(OrphanError::Vlans);
            }
            if orphan.bridge.bridging.spans_tree {
                return Err(OrphanError::Tree);
            }
            self.kernel.make_bridge(&orphan.bridge)?;
            bridge = self.kernel.bridge_named(name)?;
        }
        let bridge = bridge.ok_or(OrphanError::Foreign)?;
        let mut port = orphan.port.clone();
        port.bridge.index = bridge.index;
        let host = port.host.index;
        self.attach(port.clone())?;
        // No packet passes before the host end is a port again, so all of the kernel's flows are known.
        self.learn(&HashSet::from([host]));
        let mac = self.registry.get(&port.key).and_then(Attachment::known_station);
        if let Err(error) = self.kernel.enslave(host, bridge.index, orphan.flags, mac) {
            self.take_out(&port.key, "undone");
            self.store.write(&orphan.port).map_err(Refusal::from)?;
            return Err(error.into());
        }
        if let Some(link) = self.kernel.link(host)? {
            self.repairs.serves(&link);
        }
        for address in self.missing_gateways(&bridge)? {
            self.kernel.add_address(bridge.index, address)?;
        }
        Ok(())
    }
}

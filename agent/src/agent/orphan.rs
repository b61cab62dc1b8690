//! Containers whose bridge was deleted under them: the bridge is made anew, and they are put back.
//!
//! Their state files stay, so that an agent that is killed meanwhile goes on with it. What cannot be put back makes the agent
//! unhealthy until it can be, or until the container is gone.

use std::collections::HashSet;
use std::time::Instant;

use shunt_agent_api::{AttachmentKey, BridgePort, EventKind};
use shunt_netlink::bridge::PortFlags;
use shunt_netlink::link::Link;

use super::change::Change;
use super::{Agent, Refusal};
use crate::kernel::KernelError;
use crate::registry::{Attachment, port_flags};

/// One container without a bridge.
#[derive(Clone, Debug)]
pub(super) struct Orphan {
    port: BridgePort,
    flags: PortFlags,
    /// The bridge, as it last was.
    bridge: Link,
    /// Why it has not been put back.
    why: String,
}

/// Why a container cannot be put back.
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

impl Agent {
    /// Forgets an attachment whose bridge is gone, but for what is needed to put it back.
    pub(super) fn orphan(&mut self, key: &AttachmentKey, bridge: &Link) {
        let Some(attachment) = self.registry.get(key).cloned() else { return };
        let flags = self.repairs.flags_of(&attachment);
        if let Some(port) = self.forget(key, "bridge deleted") {
            if let Err(error) = self.store.write(&port) {
                tracing::warn!(%key, %error, "cannot write the state file: another agent would not reattach the container");
            }
            self.add_orphan(port, flags, bridge.clone());
        }
    }

    /// Notes a container that lost its bridge while no agent was there. Of the bridge only that is known which the port tells.
    pub(super) fn orphan_of(&mut self, port: BridgePort) {
        let flags = port_flags(&port);
        let bridge = Link { mtu: port.mtu, up: true, ..Link::named(&port.bridge.name) };
        self.add_orphan(port, flags, bridge);
    }

    fn add_orphan(&mut self, port: BridgePort, flags: PortFlags, bridge: Link) {
        tracing::warn!(key = %port.key, bridge = bridge.name, "bridge deleted");
        self.orphans.push(Orphan { port, flags, bridge, why: "it was not made anew yet".to_owned() });
    }

    /// Nobody wants it back any more; none if there is no such orphan.
    pub(super) fn forget_orphan(&mut self, key: &AttachmentKey) -> Option<BridgePort> {
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
    pub(super) fn orphaned(&self) -> impl Iterator<Item = &AttachmentKey> {
        self.orphans.iter().map(|orphan| &orphan.port.key)
    }

    /// What is wrong with each, for a person.
    pub(super) fn orphan_reasons(&self) -> impl Iterator<Item = String> {
        self.orphans.iter().map(|Orphan { port, bridge, why, .. }| {
            format!("{}: its bridge {} was deleted: {why}", port.key, bridge.name)
        })
    }

    /// Puts back who can be, and forgets who is gone.
    pub(super) fn reattach_orphans(&mut self) {
        for mut orphan in std::mem::take(&mut self.orphans) {
            let begun = Instant::now();
            let key = orphan.port.key.clone();
            if self.registry.get(&key).is_some() {
                continue;
            }
            if !self.is_waiting(&orphan) {
                // Back into the list, from which it is taken with its file.
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

    /// Whether its host end is there, and a port of nothing else.
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
        // Nothing passes before it is a port again, so what the kernel has begun is known by then.
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

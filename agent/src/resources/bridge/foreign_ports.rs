//! Ports of the agent's bridges that belong to others (`PORT_FOREIGN`).
//!
//! Restricted ports accept frames of a foreign port only if it leads out of the node. Fails closed: frames of an interface that is not
//! registered are dropped until its event arrives.

use shunt_dataplane::abi::PORT_FOREIGN;
use shunt_netlink::link::Link;

use crate::kernel::KernelError;
use crate::registry::PORT_MARK;
use crate::resources::node::Entries;
use crate::resources::{Node, Refusal};

/// Kinds of links to local virtual machines and containers; any other link is taken to lead out of the node.
const NO_WIRES: [&str; 6] = ["veth", "tun", "dummy", "netkit", "ifb", "nlmon"];

/// Whether a link is taken to lead out of the node.
pub(crate) fn leads_out(link: &Link) -> bool {
    !link.kind.as_deref().is_some_and(|kind| NO_WIRES.contains(&kind))
}

/// Whether a link is a container's host end, made by an ADD.
fn is_marked(link: &Link) -> bool {
    link.alias.as_deref().is_some_and(|alias| alias.starts_with(PORT_MARK))
}

impl Node {
    /// Registers every foreign port of the agent's bridges and removes those that have left. `earlier` are
    /// the entries of an earlier agent.
    pub(crate) fn find_foreign_ports(&mut self, earlier: &Entries) -> Result<(), KernelError> {
        let kinds = self.kernel.links()?;
        let known = earlier.iter().filter(|(_, entry)| entry.flags & PORT_FOREIGN != 0).map(|(at, _)| *at);
        let gone: Vec<_> = known
            .chain(self.foreign_ports.keys().copied())
            .filter(|index| {
                !self.is_known(*index) && kinds.iter().all(|kind| !self.is_foreign_port(kind, *index))
            })
            .collect();
        for index in gone {
            self.forget_foreign_port(index)?;
        }
        for kind in &kinds {
            if self.is_foreign_port(kind, kind.index) {
                self.note_foreign_port(kind)?;
            }
        }
        Ok(())
    }

    /// Registers the foreign ports of a new bridge. Only its ports are dumped: the kernel's time per link
    /// grows with the number of namespaces (`peernet2id`, net/core/net_namespace.c).
    pub(crate) fn find_foreign_ports_on(&mut self, bridge: u32) -> Result<(), KernelError> {
        for kind in self.kernel.ports(bridge)? {
            if self.is_foreign_port(&kind, kind.index) {
                self.note_foreign_port(&kind)?;
                // Another agent's container: one whose ADD is not done is down.
                if kind.up {
                    self.datapath.end_sparing(bridge)?;
                }
            }
        }
        Ok(())
    }

    /// A link that is neither an attachment's nor a registered bridge has changed.
    pub(crate) fn foreign_port_changed(&mut self, link: &Link) -> Result<(), Refusal> {
        let bridge = link.master.filter(|master| self.is_served(*master));
        match (bridge, self.foreign_ports.get(&link.index)) {
            (Some(bridge), Some(noted)) if bridge == *noted => {}
            (Some(_), _) => {
                if let Some(kind) =
                    self.kernel.link(link.index)?.filter(|kind| self.is_foreign_port(kind, link.index))
                {
                    self.note_foreign_port(&kind)?;
                }
            }
            (None, Some(_)) => self.forget_foreign_port(link.index)?,
            (None, None) => {}
        }
        Ok(())
    }

    /// Removes the foreign ports of a bridge that is no longer registered.
    pub(crate) fn forget_foreign_ports_of(&mut self, bridge: u32) -> Result<(), KernelError> {
        let foreign: Vec<_> =
            self.foreign_ports.iter().filter(|(_, on)| **on == bridge).map(|(index, _)| *index).collect();
        foreign.into_iter().try_for_each(|index| self.forget_foreign_port(index))
    }

    /// Removes one: its link was deleted, left the bridge, or became an attachment's.
    pub(crate) fn forget_foreign_port(&mut self, index: u32) -> Result<(), KernelError> {
        self.foreign_ports.remove(&index);
        if self.is_known(index) { Ok(()) } else { Ok(self.datapath.erase_foreign_port(index)?) }
    }

    fn note_foreign_port(&mut self, kind: &Link) -> Result<(), KernelError> {
        let Some(bridge) = kind.master else { return Ok(()) };
        let leads_out = leads_out(kind);
        self.datapath.write_foreign_port(kind.index, bridge, leads_out)?;
        // What is said there, the programs do not see. A container's end is foreign for the moments before its ADD and after its DEL, in
        // which it is down.
        if !is_marked(kind) {
            self.datapath.end_sparing(bridge)?;
        }
        self.foreign_ports.insert(kind.index, bridge);
        tracing::debug!(
            index = kind.index,
            kind = kind.kind.as_deref().unwrap_or_default(),
            leads_out,
            "foreign port"
        );
        Ok(())
    }

    fn is_foreign_port(&self, kind: &Link, index: u32) -> bool {
        kind.index == index
            && !self.is_known(index)
            && kind.master.is_some_and(|master| self.is_served(master))
    }

    /// Whether a bridge has ports of the agent's.
    fn is_served(&self, bridge: u32) -> bool {
        self.registry.bridge(bridge).is_some() || self.has_unattached_on(bridge)
    }
}

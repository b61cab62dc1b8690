//! A link as a port of the kernel's bridge: how it joins, and which of its restrictions the kernel enforces too.

use shunt_agent_api::Restrictions;

use shunt_netlink::bridge::PortFlags;
use shunt_netlink::fdb::{place_station, station};
use shunt_netlink::link::{Selector, set_link_up, set_master, set_port_flags};
use shunt_netlink::{NetlinkError, Request};

use super::Node;

/// How the kernel's bridge is to treat a port.
pub(crate) fn port_flags(hairpin: bool, restrictions: &Restrictions) -> PortFlags {
    let aside = restrictions.vlans.is_some();
    PortFlags { hairpin, isolated: restrictions.isolated, locked: restrictions.mac_check || aside, aside }
}

/// Whether the bridge restricts a port as far as this; more is others' to ask for, and hairpin mode is theirs to change.
pub(crate) fn holds(wanted: PortFlags, found: PortFlags) -> bool {
    (!wanted.isolated || found.isolated) && (!wanted.locked || found.locked)
}

/// A port, and what the bridge is to know of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BridgeSide {
    /// The link's index.
    pub(crate) index: u32,
    /// The bridge's index.
    pub(crate) bridge: u32,
    /// How it is to be treated.
    pub(crate) flags: PortFlags,
    /// The container's address.
    pub(crate) station: Option<[u8; 6]>,
    /// Whether no other port may take that: the port is checked.
    pub(crate) is_fixed: bool,
}

impl BridgeSide {
    /// Makes the link a port of the bridge, which forwards nothing for it until it is set up, and configures it.
    pub(crate) fn add(self, node: &mut Node) -> Result<Vec<Request>, NetlinkError> {
        let configured = self.configure(node)?;
        Ok([set_master(self.index, self.bridge)].into_iter().chain(configured).collect())
    }

    /// Tells the bridge about its port. What restricts the port is set before the link is set up, so that the kernel's own way keeps
    /// to it as well, with our programs or without them. Where somebody else has told the bridge of the container's address, that is
    /// left alone: the agent refuses such a port.
    fn configure(self, node: &mut Node) -> Result<Vec<Request>, NetlinkError> {
        // Of a port in VLANs the bridge knows no station: a locked port without one lets nothing in.
        let placed = match self.station.filter(|_| !self.flags.aside) {
            Some(mac) => {
                let known = node.netlink.get(station(self.bridge, mac))?;
                let is_elsewhere = known.as_ref().is_some_and(|known| known.told && known.port != self.index);
                if is_elsewhere {
                    None
                } else {
                    place_station(self.index, mac, self.is_fixed, known.as_ref())
                }
            }
            None => None,
        };
        let told = self.flags != PortFlags::default();
        let flags = told.then(|| set_port_flags(self.index, self.flags.least()));
        Ok(placed.into_iter().chain(flags).collect())
    }

    /// The same as [`BridgeSide::add`], and sets the link up: last, as with it the container begins to announce itself, and the kernel
    /// does not listen until that is done.
    pub(crate) fn add_and_set_up(self, node: &mut Node) -> Result<Vec<Request>, NetlinkError> {
        let mut changes = self.add(node)?;
        changes.push(set_link_up(Selector::Index(self.index)));
        Ok(changes)
    }

    /// Restricts a port that another plugin has put onto the bridge; leaves an open one as it is.
    pub(crate) fn restrict(self, node: &mut Node) -> Result<Vec<Request>, NetlinkError> {
        if self.flags == PortFlags::default() { Ok(Vec::new()) } else { self.configure(node) }
    }
}

//! A link as a port of the kernel's bridge: how it joins, and which of its restrictions the kernel enforces too.

use shunt_agent_api::Restrictions;

use shunt_netlink::Request;
use shunt_netlink::bridge::PortFlags;
use shunt_netlink::fdb::add_station;
use shunt_netlink::link::{Selector, set_link_up, set_master, set_port_flags};

/// How the kernel's bridge is to treat a port.
pub(crate) fn port_flags(hairpin: bool, restrictions: &Restrictions) -> PortFlags {
    let aside = restrictions.vlans.is_some();
    PortFlags { hairpin, isolated: restrictions.isolated, locked: restrictions.mac_check || aside, aside }
}

/// Whether the bridge restricts a port as far as this; more is others' to ask for, and hairpin mode is theirs to change.
pub(crate) fn holds(wanted: PortFlags, found: PortFlags) -> bool {
    (!wanted.isolated || found.isolated) && (!wanted.locked || found.locked)
}

/// Makes the link `index` a port of `bridge`, which forwards nothing for it until it is set up, and [`configure_port`]s it.
pub(crate) fn add_port(index: u32, bridge: u32, flags: PortFlags, station: Option<[u8; 6]>) -> Vec<Request> {
    [set_master(index, bridge)].into_iter().chain(configure_port(index, flags, station)).collect()
}

/// Tells the bridge about its port `index`. What restricts the port is set before the link is set up, so that the kernel's own way keeps
/// to it as well, with our programs or without them. `station` is the container's address.
fn configure_port(index: u32, flags: PortFlags, station: Option<[u8; 6]>) -> Vec<Request> {
    // Of a port in VLANs the bridge knows no station: a locked port without one lets nothing in.
    let station = station.filter(|_| !flags.aside).map(|mac| add_station(index, mac));
    let flags = (flags != PortFlags::default()).then(|| set_port_flags(index, flags.least()));
    station.into_iter().chain(flags).collect()
}

/// The same, and sets it up: last, as with it the container begins to announce itself, and the kernel does not listen until that
/// is done.
pub(crate) fn add_port_and_set_up(
    index: u32,
    bridge: u32,
    flags: PortFlags,
    station: Option<[u8; 6]>,
) -> Vec<Request> {
    let mut changes = add_port(index, bridge, flags, station);
    changes.push(set_link_up(Selector::Index(index)));
    changes
}

/// Restricts a port that another plugin has put onto the bridge; leaves an open one as it is.
pub(crate) fn restrict(index: u32, flags: PortFlags, station: Option<[u8; 6]>) -> Vec<Request> {
    if flags == PortFlags::default() { Vec::new() } else { configure_port(index, flags, station) }
}

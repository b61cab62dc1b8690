//! A link becomes a port of the kernel's bridge, which is told about its restrictions what it can understand.

use netlink_packet_route::link::InfoBridgePort;
use shunt_agent_api::Restrictions;

use crate::mac::Mac;
use crate::netlink::{PortFlags, Request, Selector, requests};

/// How the kernel's bridge is to treat a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PortSettings {
    hairpin: bool,
    isolated: bool,
    locked: bool,
    /// It is in VLANs: the agent's programs do everything, and the bridge must do nothing.
    aside: bool,
}

impl PortSettings {
    pub(crate) fn new(hairpin: bool, restrictions: &Restrictions) -> Self {
        let aside = restrictions.vlans.is_some();
        let locked = restrictions.mac_check || aside;
        Self { hairpin, isolated: restrictions.isolated, locked, aside }
    }

    /// Whether the bridge restricts a port as far as this; more is others' to ask for, and hairpin mode is theirs to change.
    pub(crate) fn hold(self, found: PortFlags) -> bool {
        (!self.isolated || found.isolated) && (!self.locked || found.locked != Some(false))
    }

    /// What the bridge is to know of the container's place. Of a port in VLANs nothing: a locked port without a known station
    /// lets nothing in.
    fn known(self, station: Option<Mac>) -> Option<Mac> {
        station.filter(|_| !self.aside)
    }

    fn flags(self) -> Vec<InfoBridgePort> {
        let aside = [
            InfoBridgePort::Learning(false),
            InfoBridgePort::UnicastFlood(false),
            InfoBridgePort::MulticastFlood(false),
            InfoBridgePort::BroadcastFlood(false),
        ];
        let flags = [
            self.hairpin.then_some(InfoBridgePort::HairpinMode(true)),
            self.isolated.then_some(InfoBridgePort::Isolated(true)),
            // Kernels before 5.18 take no notice of it.
            self.locked.then_some(InfoBridgePort::Locked(true)),
        ];
        let aside = aside.into_iter().filter(|_| self.aside);
        flags.into_iter().flatten().chain(aside).collect()
    }
}

/// Makes the link `index` a port of `bridge`, which forwards nothing for it until it is set up, and [`settle`]s it.
pub(crate) fn enrol(index: u32, bridge: u32, settings: PortSettings, station: Option<Mac>) -> Vec<Request> {
    [requests::enslave(index, bridge)].into_iter().chain(settle(index, settings, station)).collect()
}

/// Tells the bridge about its port `index`. What restricts the port is set before the link is set up, so that the kernel's own way keeps
/// to it as well, with our programs or without them. `station` is the container's address.
fn settle(index: u32, settings: PortSettings, station: Option<Mac>) -> Vec<Request> {
    let flags = settings.flags();
    let station = settings.known(station).map(|mac| requests::add_station(index, mac));
    let flags = (!flags.is_empty()).then(|| requests::set_port_flags(index, flags));
    station.into_iter().chain(flags).collect()
}

/// The same, and sets it up: last, as with it the container begins to announce itself, and the kernel does not listen until that
/// is done.
pub(crate) fn enlist(index: u32, bridge: u32, settings: PortSettings, station: Option<Mac>) -> Vec<Request> {
    let mut changes = enrol(index, bridge, settings, station);
    changes.push(requests::set_up(Selector::Index(index)));
    changes
}

/// Restricts a port that somebody else has put onto the bridge; leaves an open one as it is.
pub(crate) fn restrict(index: u32, settings: PortSettings, station: Option<Mac>) -> Vec<Request> {
    if settings == PortSettings::default() { Vec::new() } else { settle(index, settings, station) }
}

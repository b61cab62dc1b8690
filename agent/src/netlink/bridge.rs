//! Bridges and their ports: made, and told how to serve.

use std::time::Duration;

use nix::libc;
use shunt_agent_api::BridgePort;
use shunt_dataplane::wire::address::Mac;

use super::attribute::attribute;
use super::link::{Link, request};
use super::socket::{self, NetlinkError, RequestSocket};

/// Inside `IFLA_LINKINFO`, what a link's master says of it, and of a port (linux/if_link.h).
const IFLA_INFO_SLAVE_KIND: u16 = 4;
pub(super) const IFLA_INFO_SLAVE_DATA: u16 = 5;
const IFLA_BRPORT_STATE: u16 = 1;
const IFLA_BRPORT_MODE: u16 = 4;
const IFLA_BRPORT_ISOLATED: u16 = 33;
const IFLA_BRPORT_LOCKED: u16 = 39;
/// Whether the bridge learns from a port, and floods to it: unknown unicast, multicast, broadcast.
const ASIDE: [u16; 4] = [8, 9, 27, 30];
/// Of a bridge.
const IFLA_BR_FORWARD_DELAY: u16 = 1;
const IFLA_BR_STP_STATE: u16 = 5;
const IFLA_BR_TOPOLOGY_CHANGE: u16 = 14;
const IFLA_BR_VLAN_FILTERING: u16 = 7;
/// `BR_STATE_LISTENING`, `BR_STATE_LEARNING`, `BR_STATE_BLOCKING` (linux/if_bridge.h).
const NOT_FORWARDING: [u8; 3] = [1, 2, 4];
const NLA_F_NESTED: u16 = 1 << 15;

/// What a bridge is told of a port when it is put into service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortFlags {
    /// It sends back out of the port that a packet came by (`IFLA_BRPORT_MODE`).
    pub hairpin: bool,
    /// It reaches no other isolated port (`IFLA_BRPORT_ISOLATED`).
    pub isolated: bool,
    /// Only stations that the bridge was told of may send by it (`IFLA_BRPORT_LOCKED`, since Linux 5.18).
    pub locked: bool,
    /// The bridge learns nothing from it and floods nothing to it: the programs do everything.
    pub aside: bool,
}

impl PortFlags {
    /// Those that a port needs.
    pub const fn of(port: &BridgePort) -> Self {
        Self {
            hairpin: port.service.hairpin,
            isolated: port.restrictions.isolated,
            locked: port.restrictions.mac_check || port.restrictions.vlans.is_some(),
            aside: port.restrictions.vlans.is_some(),
        }
    }

    pub(super) fn parse(value: &[u8]) -> Self {
        let (mut flags, mut known, mut off) = (Self::default(), false, 0);
        socket::attributes(value, |kind, value| match kind {
            IFLA_BRPORT_MODE => flags.hairpin = value == [1],
            IFLA_BRPORT_ISOLATED => flags.isolated = value == [1],
            IFLA_BRPORT_LOCKED => (flags.locked, known) = (value == [1], true),
            kind if ASIDE.contains(&kind) => off += usize::from(value == [0]),
            _ => {}
        });
        flags.aside = off == ASIDE.len();
        // A kernel that has no locked ports is not to be reminded of it for ever.
        flags.locked |= !known;
        flags
    }

    /// Those of both.
    pub fn and(self, other: Self) -> Self {
        Self {
            hairpin: self.hairpin || other.hairpin,
            isolated: self.isolated || other.isolated,
            locked: self.locked || other.locked,
            aside: self.aside || other.aside,
        }
    }
}

/// Whether a port is kept from forwarding, by a spanning tree or by an operator. One that is disabled is not up, and no frame comes
/// by it.
pub(super) fn is_blocked(port: &[u8]) -> bool {
    let mut blocked = false;
    socket::attributes(port, |kind, value| {
        blocked |= kind == IFLA_BRPORT_STATE && NOT_FORWARDING.iter().any(|state| value == [*state]);
    });
    blocked
}

/// How a bridge bridges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BridgeMode {
    /// It keeps VLANs apart.
    pub filters_vlans: bool,
    /// It runs a spanning tree, or somebody does for it.
    pub spans_tree: bool,
    /// While the tree changes: for how long a station that is not heard is believed to be where it was (IEEE 802.1D-2004
    /// section 7.9.2), instead of for five minutes.
    pub ageing: Option<Duration>,
}

impl BridgeMode {
    pub(super) fn parse(value: &[u8]) -> Self {
        let (mut mode, mut delay, mut changes) = (Self::default(), 0, false);
        socket::attributes(value, |kind, value| match kind {
            IFLA_BR_VLAN_FILTERING => mode.filters_vlans = value == [1],
            IFLA_BR_STP_STATE => mode.spans_tree = socket::number(value).is_some_and(|state| state != 0),
            IFLA_BR_FORWARD_DELAY => delay = socket::number(value).unwrap_or_default(),
            IFLA_BR_TOPOLOGY_CHANGE => changes = value == [1],
            _ => {}
        });
        // `USER_HZ`, of which a second has a hundred.
        mode.ageing = changes.then(|| Duration::from_millis(u64::from(delay) * 10));
        mode
    }
}

/// Makes a link a port of a bridge, unless it is one.
///
/// # Errors
/// Netlink's.
pub fn enslave(socket: &mut RequestSocket, index: u32, bridge: u32) -> Result<(), NetlinkError> {
    let master = attribute(libc::IFLA_MASTER, &bridge.to_ne_bytes());
    socket.get(libc::RTM_SETLINK, &[&request(index)[..16], &master].concat(), |_| {})
}

/// Makes a port this kind of port.
///
/// # Errors
/// Netlink's.
pub fn set_flags(socket: &mut RequestSocket, index: u32, flags: PortFlags) -> Result<(), NetlinkError> {
    let aside = ASIDE.iter().filter(|_| flags.aside).flat_map(|kind| attribute(*kind, &[0]));
    let flags = [
        aside.collect(),
        attribute(IFLA_BRPORT_MODE, &[flags.hairpin.into()]),
        attribute(IFLA_BRPORT_ISOLATED, &[flags.isolated.into()]),
        attribute(IFLA_BRPORT_LOCKED, &[flags.locked.into()]),
    ];
    let data = attribute(IFLA_INFO_SLAVE_DATA | NLA_F_NESTED, &flags.concat());
    let info = [attribute(IFLA_INFO_SLAVE_KIND, b"bridge\0"), data].concat();
    let info = attribute(libc::IFLA_LINKINFO | NLA_F_NESTED, &info);
    socket.get(libc::RTM_NEWLINK, &[&request(index)[..16], &info].concat(), |_| {})
}

/// Makes a bridge like one that is gone: its name, address, MTU, alias, and whether it is up and promiscuous. One of that
/// name may be there already.
///
/// # Errors
/// Netlink's.
pub fn make(socket: &mut RequestSocket, like: &Link) -> Result<(), NetlinkError> {
    let mut header = [0; 16];
    let flags = [(like.up, libc::IFF_UP), (like.promiscuous, libc::IFF_PROMISC)];
    let flags = flags.iter().filter(|(holds, _)| *holds).fold(0, |flags, (_, bit)| flags | *bit as u32);
    header[8..12].copy_from_slice(&flags.to_ne_bytes());
    header[12..16].copy_from_slice(&flags.to_ne_bytes());
    let mut payload = header.to_vec();
    payload.extend(attribute(libc::IFLA_IFNAME, &[like.name.as_bytes(), &[0]].concat()));
    payload.extend(attribute(libc::IFLA_MTU, &like.mtu.to_ne_bytes()));
    if let Some(mac) = like.mac {
        payload.extend(attribute(libc::IFLA_ADDRESS, &mac.octets()));
    }
    let kind = attribute(libc::IFLA_INFO_KIND, b"bridge\0");
    payload.extend(attribute(libc::IFLA_LINKINFO | NLA_F_NESTED, &kind));
    match socket.make(libc::RTM_NEWLINK, &payload) {
        Err(error) if error.means_exists() => Ok(()),
        Ok(()) => like.alias.as_ref().map_or(Ok(()), |alias| set_alias(socket, &like.name, alias)),
        other => other,
    }
}

/// In a message that makes a link the kernel reads no alias (`rtnl_create_link`, net/core/rtnetlink.c).
fn set_alias(socket: &mut RequestSocket, name: &str, alias: &str) -> Result<(), NetlinkError> {
    let name = attribute(libc::IFLA_IFNAME, &[name.as_bytes(), &[0]].concat());
    let alias = attribute(libc::IFLA_IFALIAS, &[alias.as_bytes(), &[0]].concat());
    socket.get(libc::RTM_SETLINK, &[&request(0)[..16], &name, &alias].concat(), |_| {})
}

/// Gives a bridge this address; from then on it takes no port's.
///
/// # Errors
/// Netlink's.
pub fn set_mac(socket: &mut RequestSocket, index: u32, mac: Mac) -> Result<(), NetlinkError> {
    let address = attribute(libc::IFLA_ADDRESS, &mac.octets());
    socket.get(libc::RTM_SETLINK, &[&request(index)[..16], &address].concat(), |_| {})
}

/// Sets a link up.
///
/// # Errors
/// Netlink's.
pub fn set_up(socket: &mut RequestSocket, index: u32) -> Result<(), NetlinkError> {
    let mut header = [0; 16];
    header[4..8].copy_from_slice(&index.to_ne_bytes());
    header[8..12].copy_from_slice(&(libc::IFF_UP as u32).to_ne_bytes());
    header[12..16].copy_from_slice(&(libc::IFF_UP as u32).to_ne_bytes());
    socket.get(libc::RTM_NEWLINK, &header, |_| {})
}

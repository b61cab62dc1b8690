//! What the kernel says of a link.

use netlink_packet_core::{parse_i32, parse_mac, parse_u8};
use netlink_packet_route::AddressFamily;
use netlink_packet_route::link::{
    InfoBridge, InfoBridgePort, InfoVlan, LinkFlags, LinkHeader, LinkLayerType, State,
};
use nix::libc;

use crate::attribute::{attributes, find, number, text, typed};
use crate::bridge::{BridgeMode, PortFlags, PortSettings, is_blocked};
use crate::request::Reply;

/// Bytes of `struct ifinfomsg`.
pub(super) const HEADER: usize = 16;

// `LinkAttribute` would bring the readers of every kind of link into the plugin, and reads what is nested all or nothing. So
// attributes are told apart by hand; their values are read by the crates.
const IFLA_INFO_PORT_KIND: u16 = 4;
const IFLA_INFO_PORT_DATA: u16 = 5;
const IFLA_INET6_FLAGS: u16 = 1;
const IFLA_INET6_CONF: u16 = 2;
// linux/if_link.h; not all libcs have them.
const IFLA_GSO_MAX_SIZE: u16 = 41;
const IFLA_TSO_MAX_SIZE: u16 = 59;
const IFLA_GSO_IPV4_MAX_SIZE: u16 = 63;
/// In `IFLA_INET6_FLAGS` (include/net/if_inet6.h).
const IF_RA_RCVD: u32 = 0x20;
/// The place of `accept_ra` in `IFLA_INET6_CONF` (`DEVCONF_ACCEPT_RA`), an array of 32-bit numbers.
const ACCEPT_RA: usize = 3;

/// The largest MTU of a veth (`ETH_MAX_MTU`).
const VETH_MAX_MTU: u32 = 65_535;

/// Hardware types whose packets have no link-layer header (`dev_is_mac_header_xmit`, include/linux/if_arp.h): PPP, IPv4 and IPv6
/// tunnels, SIT, GRE over either, mobile modems, and what has no type (tun, WireGuard). Those that carry Ethernet frames have
/// Ethernet's.
const BARE: [LinkLayerType; 8] = [
    LinkLayerType::Ppp,
    LinkLayerType::Tunnel,
    LinkLayerType::Tunnel6,
    LinkLayerType::Sit,
    LinkLayerType::Ipgre,
    LinkLayerType::Ip6gre,
    LinkLayerType::Rawip,
    LinkLayerType::None,
];

/// The largest packets that a link is handed to send, in bytes; 0 where the kernel does not say. It cuts those that are larger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LargestPackets {
    /// What its driver takes (`tso_max_size`, Linux 5.19).
    pub possible: u32,
    /// Of IPv6 (`gso_max_size`); before Linux 6.3 of IPv4, too.
    pub ipv6: u32,
    /// Of IPv4 (`gso_ipv4_max_size`, Linux 6.3).
    pub ipv4: u32,
}

/// A link of a network namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Link {
    /// Its ifindex; the kernel uses it again once the link is gone.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// Its Ethernet address, if it has one, in transmission order.
    pub mac: Option<[u8; 6]>,
    /// Its MTU in bytes, without the Ethernet header.
    pub mtu: u32,
    /// `veth`, `bridge` and so on; none for a device without a kind, as hardware is.
    pub kind: Option<String>,
    /// The bridge or bond that it is a port of.
    pub master: Option<u32>,
    /// The ifindex of a veth's other end, in that end's namespace; of a VLAN device's master.
    pub peer: Option<u32>,
    /// The namespace of the other end as this one numbers it (`man 7 rtnetlink`, `IFLA_LINK_NETNSID`); none if that is the same.
    pub peer_namespace: Option<i32>,
    /// Whether it is set up (`IFF_UP`).
    pub up: bool,
    /// Carrier (`IFF_LOWER_UP`). A veth end has it while both ends are up.
    pub carrier: bool,
    /// Whether it can carry packets or does not say (`IFF_RUNNING`); that comes a moment after the carrier.
    pub running: bool,
    /// Whether it says that it can carry packets (RFC 2863, `ifOperStatus` up).
    pub operational: bool,
    /// Whether it was set to take every packet (`IFF_PROMISC`).
    pub promiscuous: bool,
    /// Whether it leads back to the node itself.
    pub loopback: bool,
    /// Whether its packets have no link-layer header.
    pub bare: bool,
    /// Whether packets wait in a queueing discipline on their way out; a veth has none of its own.
    pub queued: bool,
    /// The largest MTU that it may be given.
    pub max_mtu: u32,
    /// The largest packets that it is handed.
    pub largest_packets: LargestPackets,
    /// The text that `ip link` shows as alias.
    pub alias: Option<String>,
    /// How its bridge treats it as a port.
    pub port_flags: PortFlags,
    /// Whether its bridge keeps it from forwarding (listening, learning, blocking).
    pub blocked: bool,
    /// What else is set on it as a port.
    pub port_settings: PortSettings,
    /// How it bridges, if it is a bridge.
    pub bridging: BridgeMode,
    /// The VLAN that it is a device of.
    pub vlan: Option<u16>,
    /// Whether the node would take routes and addresses from router advertisements that reach it.
    pub accepts_routers: bool,
    /// Whether one has reached it since the kernel asked for it.
    pub has_heard_router: bool,
}

impl Link {
    /// A link of which only the name is known.
    pub fn named(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }

    /// Whether a veth's other end has an XDP program in its driver. That end's namespace alone is told of it, but this end may then have
    /// smaller or larger MTUs only (`veth_xdp_set`, drivers/net/veth.c).
    pub fn has_peer_with_xdp(&self) -> bool {
        self.kind.as_deref() == Some("veth") && !matches!(self.max_mtu, 0 | VETH_MAX_MTU)
    }

    /// Whether its bridge forwards nothing by it though it is operational, or not yet.
    pub const fn is_kept_from_forwarding(&self) -> bool {
        self.blocked || self.is_shut()
    }

    /// The same without the states that a spanning tree goes through before it decides (listening, learning).
    pub const fn is_shut(&self) -> bool {
        self.port_settings.blocking || self.port_settings.disabled && self.running && self.carrier
    }

    fn of(header: &LinkHeader) -> Self {
        Self {
            index: header.index,
            bare: BARE.contains(&header.link_layer_type),
            up: header.flags.contains(LinkFlags::Up),
            carrier: header.flags.contains(LinkFlags::LowerUp),
            running: header.flags.contains(LinkFlags::Running),
            promiscuous: header.flags.contains(LinkFlags::Promisc),
            loopback: header.flags.contains(LinkFlags::Loopback),
            ..Self::default()
        }
    }

    fn read_attribute(&mut self, kind: u16, value: &[u8]) {
        let index = || number(value).filter(|index| *index != 0);
        match kind {
            libc::IFLA_IFNAME => self.name = text(value),
            libc::IFLA_ADDRESS => self.mac = parse_mac(value).ok(),
            libc::IFLA_MTU => self.mtu = number(value).unwrap_or(self.mtu),
            libc::IFLA_MAX_MTU => self.max_mtu = number(value).unwrap_or_default(),
            IFLA_TSO_MAX_SIZE => self.largest_packets.possible = number(value).unwrap_or_default(),
            IFLA_GSO_MAX_SIZE => self.largest_packets.ipv6 = number(value).unwrap_or_default(),
            IFLA_GSO_IPV4_MAX_SIZE => self.largest_packets.ipv4 = number(value).unwrap_or_default(),
            libc::IFLA_MASTER => self.master = index(),
            libc::IFLA_LINK => self.peer = index(),
            libc::IFLA_LINK_NETNSID => self.peer_namespace = parse_i32(value).ok(),
            libc::IFLA_OPERSTATE => {
                self.operational = parse_u8(value).is_ok_and(|up| State::from(up) == State::Up);
            }
            // A link has "noop" until it is first up, as a container's host end often is when it is attached.
            libc::IFLA_QDISC => self.queued = !matches!(value, b"noqueue\0" | b"noop\0"),
            libc::IFLA_IFALIAS => self.alias = Some(text(value)),
            libc::IFLA_LINKINFO => self.read_info(value),
            libc::IFLA_AF_SPEC => {
                self.accepts_routers = accepts_routers(value).unwrap_or_default();
                self.has_heard_router = has_heard_router(value).unwrap_or_default();
            }
            _ => {}
        }
    }

    fn read_info(&mut self, info: &[u8]) {
        self.kind = find(info, libc::IFLA_INFO_KIND).map(text);
        let data = find(info, libc::IFLA_INFO_DATA).unwrap_or_default();
        match self.kind.as_deref() {
            Some("bridge") => self.bridging = BridgeMode::of(typed::<InfoBridge>(data)),
            Some("vlan") => {
                self.vlan = typed(data).find_map(|info| match info {
                    InfoVlan::Id(id) => Some(id),
                    _ => None,
                });
            }
            _ => {}
        }
        if let Some(port) = find(info, IFLA_INFO_PORT_DATA)
            && find(info, IFLA_INFO_PORT_KIND).is_some_and(|kind| text(kind) == "bridge")
        {
            let flags: Vec<InfoBridgePort> = typed(port).collect();
            (self.port_flags, self.blocked) = (PortFlags::of(&flags), is_blocked(&flags));
            self.port_settings = PortSettings::of(&flags);
        }
    }
}

/// None on a kernel without IPv6.
fn accepts_routers(families: &[u8]) -> Option<bool> {
    let settings = find(find(families, libc::AF_INET6 as u16)?, IFLA_INET6_CONF)?;
    Some(number(settings.chunks(4).nth(ACCEPT_RA)?)? != 0)
}

/// None on a kernel without IPv6.
fn has_heard_router(families: &[u8]) -> Option<bool> {
    let flags: u32 = number(find(find(families, libc::AF_INET6 as u16)?, IFLA_INET6_FLAGS)?)?;
    Some(flags & IF_RA_RCVD != 0)
}

/// None for another family's message: the bridge speaks of its ports with the same types.
impl Reply for Link {
    fn read(payload: &[u8]) -> Option<Self> {
        let header = LinkHeader::parse(payload).ok()?;
        if header.interface_family != AddressFamily::Unspec {
            return None;
        }
        let mut link = Self::of(&header);
        attributes(payload.get(HEADER..)?)
            .for_each(|attribute| link.read_attribute(attribute.kind(), attribute.value()));
        Some(link)
    }
}

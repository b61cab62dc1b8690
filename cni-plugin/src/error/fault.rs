//! One thing about an attachment that is not as its result says.

use std::fmt;

use ipnet::IpNet;
use shunt_netlink::bridge::PortFlags;

use crate::result::Route;

/// A difference between a result and the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The container's end is not there, or is no veth.
    NoInterface(String),
    /// The container's end is down.
    Down(String),
    /// A link has another address.
    OtherMac { link: String, expected: String, found: String },
    /// The container's end lacks an address.
    NoAddress(IpNet),
    /// The container lacks a route.
    NoRoute(Route),
    /// The host's end is not there.
    NoHostEnd(String),
    /// The host's end is down.
    HostDown { link: String, index: u32 },
    /// The bridge is not there, or is none.
    NoBridge(String),
    /// The bridge was set not to be promiscuous any more.
    NotPromiscuous { bridge: String, index: u32 },
    /// The host's end is no port of the bridge.
    NotAPort { link: String, index: u32, bridge: String, master: u32, settings: PortFlags },
    /// The bridge does not restrict the host's end as it should.
    OtherSettings { link: String, index: u32, master: u32, settings: PortFlags },
    /// The container's end is a device of another VLAN, or on another master.
    OtherVlan { link: String, id: u16, master: String },
    /// The bridge lacks a gateway's address.
    NoGateway { bridge: String, index: u32, address: IpNet },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoInterface(name) => write!(f, "interface `{name}` is not in the container, or is no veth"),
            Self::Down(name) => write!(f, "interface `{name}` is down"),
            Self::OtherMac { link, expected, found } => {
                write!(f, "`{link}` has the address {found} and not {expected}")
            }
            Self::NoAddress(address) => write!(f, "address {address} is missing"),
            Self::NoRoute(Route { dst, gw: Some(gw), .. }) => {
                write!(f, "the route to {dst} via {gw} is missing")
            }
            Self::NoRoute(route) => write!(f, "the route to {} is missing", route.dst),
            Self::NoHostEnd(name) => {
                write!(f, "the host's end of `{name}` is missing, or is another than the result's")
            }
            Self::HostDown { link, .. } => write!(f, "`{link}` is down"),
            Self::NoBridge(name) => write!(f, "bridge `{name}` is missing, or is no bridge"),
            Self::NotPromiscuous { bridge, .. } => write!(f, "bridge `{bridge}` is not promiscuous"),
            Self::NotAPort { link, bridge, .. } => write!(f, "`{link}` is not a port of bridge `{bridge}`"),
            Self::OtherSettings { link, .. } => {
                write!(f, "the bridge port `{link}` is not isolated or locked as configured")
            }
            Self::OtherVlan { link, id, master } => write!(f, "`{link}` is not of VLAN {id} on `{master}`"),
            Self::NoGateway { bridge, address, .. } => {
                write!(f, "`{bridge}` does not have the gateway's address {address}")
            }
        }
    }
}

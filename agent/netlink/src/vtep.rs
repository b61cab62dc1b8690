//! What a VXLAN device that learns nothing is told of the others (VTEPs): behind which node's address a station is, and which
//! station a next hop is. Both are permanent: the kernel asks nobody, and counts none of them against `gc_thresh3` (net/core/neighbour.c).

use std::net::IpAddr;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_REPLACE};
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourFlags, NeighbourMessage, NeighbourState,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use crate::request::{Reply, Request};
use crate::route::family_of;

/// Where a VXLAN device takes a station to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RemoteStation {
    /// The device.
    pub index: u32,
    /// The station's Ethernet address.
    pub mac: [u8; 6],
    /// The address that its frames are sent to, encapsulated.
    pub remote: IpAddr,
}

/// The station that a next hop is taken to be, without asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FixedNeighbour {
    /// The interface.
    pub index: u32,
    /// The next hop.
    pub ip: IpAddr,
    /// Its Ethernet address.
    pub mac: [u8; 6],
}

/// None for what is not a device's own entry, or has no address behind it.
impl Reply for RemoteStation {
    fn read(payload: &[u8]) -> Option<Self> {
        let NeighbourMessage { header, attributes, .. } = NeighbourMessage::read(payload)?;
        if header.family != AddressFamily::Bridge || !header.flags.contains(NeighbourFlags::Own) {
            return None;
        }
        let (mac, remote) = pair(&attributes);
        Some(Self { index: header.ifindex, mac: mac?, remote: remote? })
    }
}

/// None for one that the kernel has learned, or may give up.
impl Reply for FixedNeighbour {
    fn read(payload: &[u8]) -> Option<Self> {
        let NeighbourMessage { header, attributes, .. } = NeighbourMessage::read(payload)?;
        let is_of_ip = matches!(header.family, AddressFamily::Inet | AddressFamily::Inet6);
        if !is_of_ip || header.state != NeighbourState::Permanent {
            return None;
        }
        let (mac, ip) = pair(&attributes);
        Some(Self { index: header.ifindex, mac: mac?, ip: ip? })
    }
}

fn pair(attributes: &[NeighbourAttribute]) -> (Option<[u8; 6]>, Option<IpAddr>) {
    let (mut mac, mut ip) = (None, None);
    for attribute in attributes {
        match attribute {
            NeighbourAttribute::LinkLayerAddress(address) => mac = address.as_slice().try_into().ok(),
            NeighbourAttribute::Destination(address) => ip = ip_of(address),
            _ => {}
        }
    }
    (mac, ip)
}

/// In an entry of a bridge's family an address has no family of its own but by its length.
fn ip_of(address: &NeighbourAddress) -> Option<IpAddr> {
    match address {
        NeighbourAddress::Inet(ip) => Some(IpAddr::V4(*ip)),
        NeighbourAddress::Inet6(ip) => Some(IpAddr::V6(*ip)),
        NeighbourAddress::Other(bytes) => {
            let v4 = <[u8; 4]>::try_from(bytes.as_slice()).map(IpAddr::from);
            v4.or_else(|_| <[u8; 16]>::try_from(bytes.as_slice()).map(IpAddr::from)).ok()
        }
        _ => None,
    }
}

/// Asks for the stations of a device. A kernel that does not check strictly tells those of others as well.
pub fn remote_stations(index: u32) -> Request<RemoteStation> {
    let mut message = NeighbourMessage::default();
    message.header.family = AddressFamily::Bridge;
    message.header.ifindex = index;
    Request::dump("list the stations of the VXLAN device", RouteNetlinkMessage::GetNeighbour(message))
}

/// Asks for the permanent neighbours of an interface. A kernel that does not check strictly tells those of others as well.
pub fn fixed_neighbours(index: u32) -> Request<FixedNeighbour> {
    let mut message = NeighbourMessage::default();
    message.attributes.push(NeighbourAttribute::IfIndex(index));
    Request::dump("list the interface's neighbours", RouteNetlinkMessage::GetNeighbour(message))
}

impl RemoteStation {
    fn message(&self) -> NeighbourMessage {
        let mut message = message(self.index, AddressFamily::Bridge, self.mac, self.remote);
        message.header.flags = NeighbourFlags::Own;
        message
    }

    /// Has the device send to the station there, and nowhere else.
    pub fn put(&self) -> Request {
        let message = RouteNetlinkMessage::NewNeighbour(self.message());
        let what = format!("tell the VXLAN device of the node {}", self.remote);
        Request::new(what, message, NLM_F_CREATE | NLM_F_REPLACE)
    }

    /// Has it do so no more.
    pub fn take(&self) -> Request {
        let message = RouteNetlinkMessage::DelNeighbour(self.message());
        Request::new(format!("have the VXLAN device forget the node {}", self.remote), message, 0)
    }
}

impl FixedNeighbour {
    fn message(&self) -> NeighbourMessage {
        message(self.index, family_of(self.ip), self.mac, self.ip)
    }

    /// Has the interface take the next hop for this station.
    pub fn put(&self) -> Request {
        let message = RouteNetlinkMessage::NewNeighbour(self.message());
        Request::new(format!("add the neighbour {}", self.ip), message, NLM_F_CREATE | NLM_F_REPLACE)
    }

    /// Takes that back.
    pub fn take(&self) -> Request {
        let message = RouteNetlinkMessage::DelNeighbour(self.message());
        Request::new(format!("remove the neighbour {}", self.ip), message, 0)
    }
}

fn message(index: u32, family: AddressFamily, mac: [u8; 6], ip: IpAddr) -> NeighbourMessage {
    let mut message = NeighbourMessage::default();
    message.header.family = family;
    message.header.ifindex = index;
    message.header.state = NeighbourState::Permanent;
    message.attributes.push(NeighbourAttribute::LinkLayerAddress(mac.to_vec()));
    message.attributes.push(NeighbourAttribute::Destination(match ip {
        IpAddr::V4(ip) => NeighbourAddress::Inet(ip),
        IpAddr::V6(ip) => NeighbourAddress::Inet6(ip),
    }));
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_read_as_they_are_written_in_both_families() {
        for ip in ["192.0.2.7", "2001:db8::7"] {
            let ip = ip.parse().unwrap();
            let station = RemoteStation { index: 7, mac: [0x52, 4, 192, 0, 2, 7], remote: ip };
            assert_eq!(RemoteStation::read(station.put().payload()), Some(station));
            let neighbour = FixedNeighbour { index: 7, ip, mac: station.mac };
            assert_eq!(FixedNeighbour::read(neighbour.put().payload()), Some(neighbour));
            assert_eq!(RemoteStation::read(neighbour.put().payload()), None);
            assert_eq!(FixedNeighbour::read(station.put().payload()), None);
        }
    }
}

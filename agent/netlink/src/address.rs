//! Addresses of interfaces.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub use netlink_packet_route::address::{AddressFlags, AddressScope};

use ipnet::IpNet;
use netlink_packet_core::Parseable as _;
use netlink_packet_route::address::{AddressAttribute, AddressHeader, AddressMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use rtnetlink::AddressMessageBuilder;

use crate::attribute::{attributes, verbatim};
use crate::request::{MAKE, Reply, Request};

/// Bytes of `struct ifaddrmsg`.
const HEADER: usize = 8;

/// An address that an interface has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    /// The interface.
    pub index: u32,
    /// The interface's own address with its subnet's length.
    pub prefix: IpNet,
    /// The other end's address on a point-to-point link, else the same.
    pub peer: IpAddr,
    /// Where the address is good.
    pub scope: AddressScope,
    /// How it was given, and what the kernel says of it.
    pub flags: AddressFlags,
}

impl Address {
    /// The address alone.
    pub fn ip(&self) -> IpAddr {
        self.prefix.addr()
    }

    /// Whether it is good on the link only.
    pub fn is_of_link(&self) -> bool {
        self.scope == AddressScope::Link
    }

    /// Whether duplicate address detection has not ended yet; it cannot be used so far.
    pub fn is_tentative(&self) -> bool {
        self.flags.contains(AddressFlags::Tentative)
    }

    /// Whether duplicate address detection found another station with it.
    pub fn is_duplicate(&self) -> bool {
        self.flags.contains(AddressFlags::Dadfailed)
    }

    /// Whether it is one of IPv6 that is soon replaced (RFC 8981). The flag of an IPv4 address that is a secondary one is the same.
    pub fn is_temporary(&self) -> bool {
        self.ip().is_ipv6() && self.flags.contains(AddressFlags::Secondary)
    }

    /// Whether others can send to it: no loopback address, and none that holds on one link only.
    pub fn is_reachable(&self) -> bool {
        is_reachable(self.ip())
    }

    /// Whether masquerading may give it to packets: of IPv4 no secondary one (`inet_select_addr`), of IPv6 none that is on trial, has
    /// failed it or is going out of use; and of both only one that holds everywhere.
    pub fn is_source(&self) -> bool {
        let unfit = match self.prefix {
            IpNet::V4(_) => AddressFlags::Secondary,
            IpNet::V6(_) => AddressFlags::Tentative | AddressFlags::Dadfailed | AddressFlags::Deprecated,
        };
        self.is_reachable() && !self.flags.intersects(unfit) && self.scope == AddressScope::Universe
    }

    pub(crate) fn of(message: &AddressMessage) -> Option<Self> {
        let (mut local, mut peer) = (None, None);
        let mut flags = AddressFlags::from_bits_retain(message.header.flags.bits().into());
        for attribute in &message.attributes {
            match attribute {
                AddressAttribute::Local(address) => local = Some(*address),
                AddressAttribute::Address(address) => peer = Some(*address),
                AddressAttribute::Flags(all) => flags = *all,
                _ => {}
            }
        }
        // Only a point-to-point address has both, and IPv6 has no IFA_LOCAL otherwise.
        let (local, peer) = (local.or(peer)?, peer.or(local)?);
        let AddressHeader { prefix_len, scope, index, .. } = message.header;
        Some(Self { index, prefix: IpNet::new(local, prefix_len).ok()?, peer, scope, flags })
    }
}

/// Whether others can send to an address: it is no loopback address, and none that holds on one link only.
pub fn is_reachable(ip: IpAddr) -> bool {
    let is_link_local = matches!(ip, IpAddr::V6(v6) if v6.is_unicast_link_local());
    !ip.is_loopback() && !ip.is_unspecified() && !ip.is_multicast() && !is_link_local
}

impl Reply for Address {
    fn read(payload: &[u8]) -> Option<Self> {
        Self::of(&AddressMessage::read(payload)?)
    }
}

/// The message itself, of `RTM_NEWADDR` or `RTM_DELADDR`. What the crates cannot read is kept as its bytes.
impl Reply for AddressMessage {
    fn read(payload: &[u8]) -> Option<Self> {
        let mut message = Self::default();
        message.header = AddressHeader::parse(payload).ok()?;
        let read = attributes(payload.get(HEADER..)?).map(|attribute| {
            AddressAttribute::parse(&attribute)
                .unwrap_or_else(|_| AddressAttribute::Other(verbatim(&attribute)))
        });
        message.attributes = read.collect();
        Some(message)
    }
}

/// What asks for, or names, an interface's addresses.
fn about(index: u32, family: AddressFamily) -> AddressMessage {
    let mut message = AddressMessage::default();
    message.header.index = index;
    message.header.family = family;
    message
}

/// Asks for the addresses of an interface (0: of all), of a family or of all. For all families the kernel takes the lock of all network
/// configuration (`rtnl_dump_all`), which it does not need for one (since Linux 6.9). A kernel that does not know the filters lists
/// every address.
pub fn addresses(index: u32, family: AddressFamily) -> Request<Address> {
    Request::dump("list the addresses", RouteNetlinkMessage::GetAddress(about(index, family)))
}

/// The same, with everything that the kernel says of each.
pub(crate) fn address_messages(index: u32) -> Request<AddressMessage> {
    let message = about(index, AddressFamily::Unspec);
    Request::dump("list the addresses", RouteNetlinkMessage::GetAddress(message))
}

/// The address as a request names it, with the subnet's broadcast address as `ip address add … brd +` sets it; a /31 or /32 has none.
fn message(index: u32, prefix: IpNet) -> AddressMessage {
    match prefix {
        IpNet::V4(v4) => {
            AddressMessageBuilder::<Ipv4Addr>::new().index(index).address(v4.addr(), v4.prefix_len()).build()
        }
        IpNet::V6(v6) => {
            AddressMessageBuilder::<Ipv6Addr>::new().index(index).address(v6.addr(), v6.prefix_len()).build()
        }
    }
}

/// Gives an interface an address; fails with `EEXIST` when it has exactly this one.
pub fn add_address(index: u32, prefix: IpNet) -> Request {
    let message = RouteNetlinkMessage::NewAddress(message(index, prefix));
    Request::new(format!("add address {prefix}"), message, MAKE)
}

/// The same for a gateway's address, which works at once: no station may have it but the node. While a duplicate is looked for, the
/// node would answer nobody, and what it sends itself would come from another address, for two seconds.
pub fn add_gateway(index: u32, prefix: IpNet) -> Request {
    let mut message = message(index, prefix);
    if prefix.addr().is_ipv6() {
        message.attributes.push(AddressAttribute::Flags(AddressFlags::Nodad));
    }
    Request::new(format!("add address {prefix}"), RouteNetlinkMessage::NewAddress(message), MAKE)
}

/// Takes an address from an interface.
pub fn delete_address(index: u32, prefix: IpNet) -> Request {
    let message = RouteNetlinkMessage::DelAddress(message(index, prefix));
    Request::new(format!("remove address {prefix}"), message, 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribute::attribute;

    const IFA_ADDRESS: u16 = 1;
    const IFA_LOCAL: u16 = 2;
    const IFA_FLAGS: u16 = 8;

    fn address(family: u8, attributes: &[(u16, &[u8])]) -> Option<Address> {
        let mut payload = vec![family, 24, 0, 0, 7, 0, 0, 0];
        payload.extend(attributes.iter().flat_map(|(kind, value)| attribute(*kind, value)));
        Address::read(&payload)
    }

    #[test]
    fn a_point_to_point_links_own_address_is_read_and_the_other_ends_beside_it() {
        let read = address(2, &[(IFA_ADDRESS, &[192, 0, 2, 9]), (IFA_LOCAL, &[192, 0, 2, 1])]).unwrap();
        assert_eq!((read.index, read.prefix), (7, "192.0.2.1/24".parse().unwrap()));
        assert_eq!(read.peer, IpAddr::from([192, 0, 2, 9]));
    }

    #[test]
    fn nobody_sends_to_loopback_and_link_local_addresses() {
        assert!(!address(2, &[(IFA_LOCAL, &[127, 0, 0, 1])]).unwrap().is_reachable());
        let mut link_local = [0; 16];
        link_local[..2].copy_from_slice(&[0xfe, 0x80]);
        assert!(!address(10, &[(IFA_ADDRESS, &link_local)]).unwrap().is_reachable());
        assert!(address(2, &[(IFA_LOCAL, &[10, 0, 0, 1])]).unwrap().is_source());
    }

    #[test]
    fn the_flags_that_do_not_fit_into_the_header_are_read() {
        let flags = (AddressFlags::Noprefixroute | AddressFlags::Tentative).bits();
        let read = address(2, &[(IFA_LOCAL, &[10, 0, 0, 1]), (IFA_FLAGS, &flags.to_ne_bytes())]).unwrap();
        assert!(
            read.is_tentative() && read.flags.contains(AddressFlags::Noprefixroute) && !read.is_duplicate()
        );
    }

    #[test]
    fn a_message_cut_anywhere_is_no_address() {
        let mut payload = vec![2, 24, 0, 0, 7, 0, 0, 0];
        payload.extend(attribute(IFA_LOCAL, &[10, 1, 0, 1]));
        assert_eq!(Address::read(&payload).unwrap().prefix, "10.1.0.1/24".parse().unwrap());
        assert!((0..payload.len()).all(|length| Address::read(&payload[..length]).is_none()));
    }
}

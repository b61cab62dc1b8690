//! Addresses of interfaces.

use std::net::{IpAddr, Ipv4Addr};

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL, Parseable};
use netlink_packet_route::address::{AddressAttribute, AddressFlags, AddressMessage, AddressScope};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use super::connection::Answer;
use super::request::Request;
use crate::prefix::Prefix;

const RTM_NEWADDR: u16 = 20;

/// An address that an interface has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InterfaceAddress {
    /// The address with its prefix.
    pub(crate) prefix: Prefix,
    /// The interface.
    pub(crate) index: u32,
    /// Whether the kernel made it and it is good on the link only.
    pub(crate) link_local: bool,
    /// Whether duplicate address detection has not ended yet; it cannot be used so far.
    pub(crate) tentative: bool,
    /// Whether duplicate address detection found another station with it.
    pub(crate) duplicate: bool,
}

impl InterfaceAddress {
    /// Reads the addresses of one interface; kernels without strict checking list every interface's.
    pub(crate) fn all(answers: &[Answer], index: u32) -> Vec<Self> {
        let messages = answers.iter().filter(|answer| answer.kind == RTM_NEWADDR);
        let addresses =
            messages.filter_map(|answer| Self::read(&AddressMessage::parse(&answer.payload[..]).ok()?));
        addresses.filter(|address| address.index == index).collect()
    }

    fn read(message: &AddressMessage) -> Option<Self> {
        let mut address = None;
        let mut flags = AddressFlags::from_bits_retain(message.header.flags.bits().into());
        for attribute in &message.attributes {
            match attribute {
                AddressAttribute::Local(local) => address = Some(*local),
                AddressAttribute::Address(peer) => address = address.or(Some(*peer)),
                AddressAttribute::Flags(all) => flags = *all,
                _ => {}
            }
        }
        Some(Self {
            prefix: Prefix::new(address?, message.header.prefix_len)?,
            index: message.header.index,
            link_local: message.header.scope == AddressScope::Link,
            tentative: flags.contains(AddressFlags::Tentative),
            duplicate: flags.contains(AddressFlags::Dadfailed),
        })
    }
}

fn message(index: u32, prefix: Prefix) -> AddressMessage {
    let mut message = AddressMessage::default();
    message.header.index = index;
    message.header.prefix_len = prefix.length();
    message.header.family = family(prefix.address());
    message.attributes.push(AddressAttribute::Local(prefix.address()));
    message.attributes.push(AddressAttribute::Address(prefix.address()));
    message.attributes.extend(broadcast(prefix).map(AddressAttribute::Broadcast));
    message
}

/// The subnet's last address, as `ip address add … brd +` would set it; a /31 or /32 has none.
fn broadcast(prefix: Prefix) -> Option<Ipv4Addr> {
    let (IpAddr::V4(network), true) = (prefix.network(), prefix.length() < 31) else {
        return None;
    };
    Some(Ipv4Addr::from_bits(network.to_bits() | (u32::MAX >> prefix.length())))
}

pub(super) fn family(address: IpAddr) -> AddressFamily {
    if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 }
}

/// Gives an interface an address; fails with `EEXIST` when it has exactly this one.
pub(crate) fn add_address(index: u32, prefix: Prefix) -> Request {
    add(prefix, message(index, prefix))
}

/// The same for a gateway's address on its bridge, which works at once: no station may have it but the node. While a duplicate is
/// looked for, the node would answer nobody, and what it sends itself would come from another address, for two seconds.
pub(crate) fn add_gateway(index: u32, prefix: Prefix) -> Request {
    let mut message = message(index, prefix);
    if prefix.address().is_ipv6() {
        message.attributes.push(AddressAttribute::Flags(AddressFlags::Nodad));
    }
    add(prefix, message)
}

fn add(prefix: Prefix, message: AddressMessage) -> Request {
    let message = RouteNetlinkMessage::NewAddress(message);
    Request::new(format!("add address {prefix}"), message, NLM_F_CREATE | NLM_F_EXCL)
}

/// Takes an address from an interface.
pub(crate) fn delete_address(index: u32, prefix: Prefix) -> Request {
    Request::new(
        format!("remove address {prefix}"),
        RouteNetlinkMessage::DelAddress(message(index, prefix)),
        0,
    )
}

/// Asks for an interface's addresses of a family, or of all families: then the kernel takes the lock of all network configuration
/// (`rtnl_dump_all`), which it has no need of for one (since Linux 6.9).
pub(crate) fn list_addresses(index: u32, family: AddressFamily) -> Request {
    let mut message = AddressMessage::default();
    message.header.index = index;
    message.header.family = family;
    Request::list("list the addresses".to_owned(), RouteNetlinkMessage::GetAddress(message))
}

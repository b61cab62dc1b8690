//! One address of an interface, as the kernel told it.

use std::net::{IpAddr, Ipv4Addr};

use ipnet::{IpNet, Ipv4Net};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::address::{AddressAttribute, AddressFlags, AddressHeaderFlags, AddressMessage};
use nix::libc::IFNAMSIZ;
use serde::{Deserialize, Serialize};

use super::wire;
use crate::address::{Address, address_messages};
use crate::connection::Connection;
use crate::error::NetlinkError;
use crate::request::{REPLACE, Request};

/// The flags that somebody may give an address; the others are the kernel's word on it.
const GIVEN: AddressFlags = AddressFlags::Nodad
    .union(AddressFlags::Optimistic)
    .union(AddressFlags::Homeaddress)
    .union(AddressFlags::Managetempaddr)
    .union(AddressFlags::Noprefixroute)
    .union(AddressFlags::Mcautojoin);

/// An address, with all that it was given with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct L3Address {
    /// For a person.
    text: String,
    /// What the kernel said of it.
    #[serde(with = "wire")]
    message: AddressMessage,
    /// Whether the other interface had it, too, before it was given it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shared: bool,
}

/// Every address of an interface that works, or will, in the order in which they have to be given to be in this one.
///
/// It decides which of them the kernel takes for what it sends. The last that IPv6 is given becomes the first (`ipv6_link_dev_addr`,
/// net/ipv6/addrconf.c), of IPv4's in one subnet it stays the last.
pub(super) fn all(connection: &mut Connection, index: u32) -> Result<Vec<L3Address>, NetlinkError> {
    let found = connection.list(address_messages(index))?.into_iter().filter_map(|message| {
        let address = Address::of(&message)?;
        let is_meant = address.index == index && !address.is_duplicate();
        is_meant.then(|| L3Address { text: address.prefix.to_string(), message, shared: false })
    });
    let (v4, v6): (Vec<_>, Vec<_>) = found.partition(|address| matches!(address.prefix(), IpNet::V4(_)));
    Ok(v4.into_iter().chain(v6.into_iter().rev()).collect())
}

impl L3Address {
    fn read(&self) -> Option<Address> {
        Address::of(&self.message)
    }

    /// The address with its subnet's length.
    pub fn prefix(&self) -> IpNet {
        self.read().map_or_else(|| Ipv4Net::from(Ipv4Addr::UNSPECIFIED).into(), |address| address.prefix)
    }

    /// The same, noted as one that the other interface had before, or had not.
    pub(super) fn shared(self, shared: bool) -> Self {
        Self { shared, ..self }
    }

    /// Whether it does not work yet.
    pub(super) fn is_tentative(&self) -> bool {
        self.read().is_some_and(|address| address.is_tentative())
    }

    /// Whether it is good beyond the link.
    pub(super) fn is_reachable(&self) -> bool {
        self.read().is_some_and(|address| !address.is_of_link())
    }

    /// Whether it is one and the same, whatever else it was given with.
    pub fn is_same(&self, other: &Self) -> bool {
        self.read()
            .zip(other.read())
            .is_some_and(|(one, other)| (one.prefix, one.peer) == (other.prefix, other.peer))
    }

    /// The subnet to which the kernel leads by itself for as long as the address is there; none where it was told not to.
    pub(super) fn own_subnet(&self) -> Option<IpNet> {
        let is_told_not_to = self.read()?.flags.contains(AddressFlags::Noprefixroute);
        self.subnet().filter(|_| !is_told_not_to)
    }

    /// Its subnet, whoever leads there.
    pub(super) fn subnet(&self) -> Option<IpNet> {
        let Address { prefix, peer, .. } = self.read()?;
        IpNet::new(peer, prefix.prefix_len()).ok().map(|subnet| subnet.trunc())
    }

    /// Whether a gateway or a source is in its subnet.
    pub(super) fn reaches(&self, ip: IpAddr) -> bool {
        self.subnet().is_some_and(|subnet| subnet.contains(&ip))
    }

    /// The message that gives it to an interface. No IPv6 duplicate is looked for: it was looked for when it was first given, and until
    /// that is done the address would not work.
    pub(super) fn at_once(&self, index: u32, name: &str) -> AddressMessage {
        let is_v6 = matches!(self.prefix(), IpNet::V6(_));
        self.for_interface(index, name, if is_v6 { AddressFlags::Nodad } else { AddressFlags::empty() })
    }

    /// The request that gives it its own flags back; none where they are those.
    pub(super) fn lasting(&self, index: u32, name: &str) -> Option<Request> {
        let address = self.read()?;
        let differs = address.ip().is_ipv6() && !address.flags.contains(AddressFlags::Nodad);
        let message = RouteNetlinkMessage::NewAddress(self.for_interface(index, name, AddressFlags::empty()));
        differs.then(|| Request::new(format!("change the flags of {}", self.text), message, REPLACE))
    }

    fn for_interface(&self, index: u32, name: &str, more: AddressFlags) -> AddressMessage {
        let had = self.read().map_or_else(AddressFlags::empty, |address| address.flags);
        let mut message = self.message.clone();
        message.header.flags = AddressHeaderFlags::empty();
        message.header.index = index;
        message.attributes = self.message.attributes.iter().filter_map(|known| given(known, name)).collect();
        message.attributes.insert(0, AddressAttribute::Flags((had & GIVEN) | more));
        message
    }
}

/// What an attribute is to the interface of this name; none where it is the kernel's word.
fn given(attribute: &AddressAttribute, name: &str) -> Option<AddressAttribute> {
    match attribute {
        AddressAttribute::Local(_)
        | AddressAttribute::Address(_)
        | AddressAttribute::Broadcast(_)
        | AddressAttribute::RoutePriority(_)
        | AddressAttribute::Protocol(_) => Some(attribute.clone()),
        AddressAttribute::CacheInfo(lifetimes) => {
            let mut lifetimes = *lifetimes;
            // What has run out since it was told is as good as out.
            lifetimes.ifa_valid = lifetimes.ifa_valid.max(1);
            Some(AddressAttribute::CacheInfo(lifetimes))
        }
        AddressAttribute::Label(text) => label(text, name).map(AddressAttribute::Label),
        _ => None,
    }
}

/// `NAME:what` of one interface as that of another; none where it is no more than the name, or would be too long.
fn label(text: &str, name: &str) -> Option<String> {
    let label = format!("{name}{}", text.get(text.find(':')?..)?);
    (label.len() < IFNAMSIZ).then_some(label)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribute::{attribute, attributes, emitted};
    use crate::request::Reply as _;

    const IFA_ADDRESS: u16 = 1;
    const IFA_LOCAL: u16 = 2;
    const IFA_LABEL: u16 = 3;
    const IFA_BROADCAST: u16 = 4;
    const IFA_CACHEINFO: u16 = 6;
    const IFA_FLAGS: u16 = 8;
    const IFA_RT_PRIORITY: u16 = 9;
    const NO_PREFIX_ROUTE: u32 = 0x200;
    const MANAGES_TEMPORARY: u32 = 0x100;

    fn payload(flags: u32, attributes: &[(u16, &[u8])]) -> Vec<u8> {
        let family = if attributes.iter().any(|(_, value)| value.len() == 16) { 10 } else { 2 };
        let mut payload = vec![family, 24, flags as u8, 0, 7, 0, 0, 0];
        payload.extend(attributes.iter().flat_map(|(kind, value)| attribute(*kind, value)));
        payload.extend(attribute(IFA_FLAGS, &flags.to_ne_bytes()));
        payload
    }

    fn address(flags: u32, attributes: &[(u16, &[u8])]) -> L3Address {
        let message = AddressMessage::read(&payload(flags, attributes)).unwrap();
        L3Address { text: String::new(), message, shared: false }
    }

    fn read(message: &AddressMessage) -> Vec<(u16, Vec<u8>)> {
        attributes(&emitted(message)[8..]).map(|one| (one.kind(), one.value().to_vec())).collect()
    }

    #[test]
    fn an_address_goes_with_its_broadcast_label_metric_and_the_flags_that_were_given() {
        let local = [192, 0, 2, 9];
        let known = address(
            0x80 | NO_PREFIX_ROUTE,
            &[
                (IFA_ADDRESS, &local),
                (IFA_LOCAL, &local),
                (IFA_BROADCAST, &[192, 0, 2, 255]),
                (IFA_LABEL, b"up0:one\0"),
                (IFA_RT_PRIORITY, &[42, 0, 0, 0]),
            ],
        );
        assert_eq!(known.prefix(), "192.0.2.9/24".parse().unwrap());
        let message = known.at_once(9, "cni0");
        assert_eq!(emitted(&message)[..8], [2, 24, 0, 0, 9, 0, 0, 0]);
        let read = read(&message);
        assert!(read.contains(&(IFA_FLAGS, NO_PREFIX_ROUTE.to_ne_bytes().to_vec())), "{read:?}");
        assert!(read.contains(&(IFA_LABEL, b"cni0:one\0".to_vec())), "{read:?}");
        assert!(read.contains(&(IFA_RT_PRIORITY, vec![42, 0, 0, 0])), "{read:?}");
        assert!(read.contains(&(IFA_BROADCAST, vec![192, 0, 2, 255])), "{read:?}");
        assert_eq!(known.own_subnet(), None);
        assert!(known.lasting(9, "cni0").is_none());
    }

    #[test]
    fn an_ipv6_address_works_at_once_and_has_its_own_flags_then() {
        let known = address(0x80 | MANAGES_TEMPORARY, &[(IFA_ADDRESS, &[0xfd; 16])]);
        let flags = |message: &AddressMessage| Address::of(message).unwrap().flags.bits();
        assert_eq!(flags(&known.at_once(9, "cni0")), AddressFlags::Nodad.bits() | MANAGES_TEMPORARY);
        let lasting = known.lasting(9, "cni0").unwrap();
        assert_eq!(flags(&AddressMessage::read(lasting.payload()).unwrap()), MANAGES_TEMPORARY);
    }

    #[test]
    fn a_label_that_is_the_name_or_does_not_fit_is_left_to_the_kernel() {
        assert_eq!(label("up0", "cni0"), None);
        assert_eq!(label("u:12345678901", "cni0"), None);
        assert_eq!(label("u:1234567890", "cni0").unwrap(), "cni0:1234567890");
    }

    #[test]
    fn a_message_cut_anywhere_makes_no_panic() {
        let whole = payload(0, &[(IFA_LOCAL, &[10, 0, 0, 1]), (IFA_CACHEINFO, &[0; 16])]);
        for length in 0..whole.len() {
            let Some(message) = AddressMessage::read(&whole[..length]) else { continue };
            let cut = L3Address { text: String::new(), message, shared: false };
            let _ = (cut.at_once(9, "cni0"), cut.lasting(9, "cni0"), cut.prefix(), cut.own_subnet());
        }
    }

    #[test]
    fn an_address_in_a_state_file_of_an_earlier_version_is_read() {
        let text = r#"{"text":"10.0.0.1/24","message":"0218008007000000080002000a000001"}"#;
        let known: L3Address = serde_json::from_str(text).unwrap();
        assert_eq!(known.prefix(), "10.0.0.1/24".parse().unwrap());
        assert_eq!(serde_json::to_string(&known).unwrap(), text);
        assert!(serde_json::from_str::<L3Address>(&text.replace("0218", "02x8")).is_err());
    }
}

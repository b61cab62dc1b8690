//! One address of an interface, as a message (`struct ifaddrmsg`, linux/if_addr.h).

use std::net::IpAddr;

use nix::libc;
use serde::{Deserialize, Serialize};
use shunt_agent_api::Interface;

use super::super::attribute::attribute;
use super::super::socket::{self, NetlinkError, RequestSocket};
use super::octets;
use crate::nft::Prefix;

/// Bytes of `struct ifaddrmsg`.
const IFADDRMSG: usize = 8;

const IFA_FLAGS: u16 = 8;
const IFA_RT_PRIORITY: u16 = 9;
const IFA_PROTO: u16 = 11;

const NO_DUPLICATES: u32 = 0x02;
const OPTIMISTIC: u32 = 0x04;
const DUPLICATE: u32 = 0x08;
const HOME: u32 = 0x10;
const TENTATIVE: u32 = 0x40;
const MANAGES_TEMPORARY: u32 = 0x100;
const NO_PREFIX_ROUTE: u32 = 0x200;
const JOINS_GROUPS: u32 = 0x400;

/// The flags that somebody may give an address; the others are the kernel's word on it.
const GIVEN: u32 = NO_DUPLICATES | OPTIMISTIC | HOME | MANAGES_TEMPORARY | NO_PREFIX_ROUTE | JOINS_GROUPS;

/// An address, with all that it was given with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Address {
    /// For a person.
    text: String,
    /// What the kernel said of it.
    #[serde(with = "octets")]
    message: Vec<u8>,
    /// Whether the other interface had it, too, before it was given it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shared: bool,
}

/// What is read of the message whenever it is needed.
struct Parts {
    family: u8,
    bits: u8,
    scope: u8,
    flags: u32,
    index: u32,
    local: IpAddr,
    /// The other end, or the same address.
    peer: IpAddr,
}

/// Every address of an interface that works, or will, in the order in which they have to be given to be in this one.
///
/// It decides which of them the kernel takes for what it sends. The last that IPv6 is given becomes the first
/// (`ipv6_link_dev_addr`, net/ipv6/addrconf.c), of IPv4's in one subnet it stays the last.
pub(super) fn all(socket: &mut RequestSocket, index: u32) -> Result<Vec<Address>, NetlinkError> {
    let found = socket.dump(libc::RTM_GETADDR, &[0; IFADDRMSG], |payload| {
        let parts = parse(payload)?;
        (parts.index == index && parts.flags & DUPLICATE == 0).then(|| Address {
            text: Prefix::new(parts.local, parts.bits).to_string(),
            message: payload.to_vec(),
            shared: false,
        })
    })?;
    let (v4, v6): (Vec<_>, Vec<_>) = found.into_iter().partition(|address| address.prefix().is_v4());
    Ok(v4.into_iter().chain(v6.into_iter().rev()).collect())
}

fn parse(payload: &[u8]) -> Option<Parts> {
    let (header, rest) = payload.split_first_chunk::<IFADDRMSG>()?;
    let [family, bits, low, scope, i0, i1, i2, i3] = *header;
    let (mut local, mut peer, mut flags) = (None, None, u32::from(low));
    socket::attributes(rest, |kind, value| match kind {
        libc::IFA_LOCAL => local = ip(value),
        libc::IFA_ADDRESS => peer = ip(value),
        IFA_FLAGS => flags = socket::number(value).unwrap_or(flags),
        _ => {}
    });
    let (local, peer) = (local.or(peer)?, peer.or(local)?);
    Some(Parts { family, bits, scope, flags, index: u32::from_ne_bytes([i0, i1, i2, i3]), local, peer })
}

pub(super) fn ip(value: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(value).map(IpAddr::from);
    v4.or_else(|_| <[u8; 16]>::try_from(value).map(IpAddr::from)).ok()
}

impl Address {
    /// The address with its subnet's length.
    pub fn prefix(&self) -> Prefix {
        let unknown = || Prefix::new(IpAddr::from([0; 4]), 0);
        parse(&self.message).map_or_else(unknown, |parts| Prefix::new(parts.local, parts.bits))
    }

    /// The same, noted as one that the other interface had before, or had not.
    pub(super) fn shared(self, shared: bool) -> Self {
        Self { shared, ..self }
    }

    /// Whether it does not work yet.
    pub(super) fn is_tentative(&self) -> bool {
        parse(&self.message).is_some_and(|parts| parts.flags & TENTATIVE != 0)
    }

    /// Whether it is good beyond the link.
    pub(super) fn is_reachable(&self) -> bool {
        parse(&self.message).is_some_and(|parts| parts.scope != libc::RT_SCOPE_LINK)
    }

    /// Whether it is one and the same, whatever else it was given with.
    pub fn is_same(&self, other: &Self) -> bool {
        match (parse(&self.message), parse(&other.message)) {
            (Some(one), Some(other)) => {
                (one.local, one.peer, one.bits) == (other.local, other.peer, other.bits)
            }
            _ => false,
        }
    }

    /// The subnet to which the kernel leads by itself for as long as the address is there; none where it was told not to.
    pub(super) fn own_subnet(&self) -> Option<Prefix> {
        let parts = parse(&self.message)?;
        (parts.flags & NO_PREFIX_ROUTE == 0)
            .then(|| Prefix::new(Prefix::new(parts.peer, parts.bits).first(), parts.bits))
    }

    /// Its subnet, whoever leads there.
    pub(super) fn subnet(&self) -> Option<Prefix> {
        parse(&self.message).map(|parts| Prefix::new(parts.peer, parts.bits))
    }

    /// The message that gives it to an interface. No IPv6 duplicate is looked for: it was looked for when it was first given, and
    /// until that is done the address would not work.
    pub(super) fn at_once(&self, to: &Interface) -> Vec<u8> {
        self.for_interface(to, |flags, v6| if v6 { flags | NO_DUPLICATES } else { flags })
    }

    /// The message that gives it its own flags back; none where they are those.
    pub(super) fn lasting(&self, to: &Interface) -> Option<Vec<u8>> {
        let parts = parse(&self.message)?;
        let differs = parts.local.is_ipv6() && parts.flags & NO_DUPLICATES == 0;
        differs.then(|| self.for_interface(to, |flags, _| flags))
    }

    fn for_interface(&self, to: &Interface, flags: impl FnOnce(u32, bool) -> u32) -> Vec<u8> {
        let Some(Parts { family, bits, scope, flags: had, local, .. }) = parse(&self.message) else {
            return Vec::new();
        };
        let mut payload = vec![family, bits, 0, scope];
        payload.extend(to.index.to_ne_bytes());
        payload.extend(attribute(IFA_FLAGS, &flags(had & GIVEN, local.is_ipv6()).to_ne_bytes()));
        socket::attributes(self.message.get(IFADDRMSG..).unwrap_or_default(), |kind, value| match kind {
            libc::IFA_LOCAL | libc::IFA_ADDRESS | libc::IFA_BROADCAST | IFA_RT_PRIORITY | IFA_PROTO => {
                payload.extend(attribute(kind, value));
            }
            libc::IFA_CACHEINFO => payload.extend(attribute(kind, &lifetimes(value))),
            libc::IFA_LABEL => payload
                .extend(label(value, &to.name).map(|text| attribute(kind, &text)).into_iter().flatten()),
            _ => {}
        });
        payload
    }
}

/// How long it is preferred and valid. What has run out since it was told is as good as out.
fn lifetimes(value: &[u8]) -> Vec<u8> {
    // struct ifa_cacheinfo: ifa_prefered, ifa_valid, cstamp, tstamp.
    let mut lifetimes = value.to_vec();
    if lifetimes.get(4..8) == Some(&[0; 4]) {
        lifetimes[4..8].copy_from_slice(&1u32.to_ne_bytes());
    }
    lifetimes
}

/// `NAME:what` of one interface as that of another; none where it is no more than the name, or would be too long.
fn label(value: &[u8], to: &str) -> Option<Vec<u8>> {
    let at = value.iter().position(|byte| *byte == b':')?;
    let label = [to.as_bytes(), value.get(at..)?].concat();
    (label.len() <= libc::IFNAMSIZ).then_some(label)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(flags: u32, attributes: &[(u16, &[u8])]) -> Address {
        let v6 = attributes[0].1.len() == 16;
        let mut message = vec![if v6 { 10 } else { 2 }, 24, 0x80, 0, 7, 0, 0, 0];
        for (kind, value) in attributes {
            message.extend(attribute(*kind, value));
        }
        message.extend(attribute(IFA_FLAGS, &flags.to_ne_bytes()));
        Address { text: String::new(), message, shared: false }
    }

    fn read(payload: &[u8]) -> Vec<(u16, Vec<u8>)> {
        let mut read = Vec::new();
        socket::attributes(&payload[IFADDRMSG..], |kind, value| read.push((kind, value.to_vec())));
        read
    }

    fn to() -> Interface {
        Interface { name: "cni0".into(), index: 9 }
    }

    #[test]
    fn an_address_goes_with_its_broadcast_label_metric_and_the_flags_that_were_given() {
        let local = [192, 0, 2, 9];
        let known = address(
            0x80 | NO_PREFIX_ROUTE,
            &[
                (libc::IFA_ADDRESS, &local),
                (libc::IFA_LOCAL, &local),
                (libc::IFA_BROADCAST, &[192, 0, 2, 255]),
                (libc::IFA_LABEL, b"up0:one\0"),
                (IFA_RT_PRIORITY, &[42, 0, 0, 0]),
            ],
        );
        assert_eq!(known.prefix(), "192.0.2.9/24".parse().unwrap());
        let payload = known.at_once(&to());
        assert_eq!(payload[..8], [2, 24, 0, 0, 9, 0, 0, 0]);
        let read = read(&payload);
        assert!(read.contains(&(IFA_FLAGS, NO_PREFIX_ROUTE.to_ne_bytes().to_vec())), "{read:?}");
        assert!(read.contains(&(libc::IFA_LABEL, b"cni0:one\0".to_vec())), "{read:?}");
        assert!(read.contains(&(IFA_RT_PRIORITY, vec![42, 0, 0, 0])), "{read:?}");
        assert_eq!((known.own_subnet(), known.lasting(&to())), (None, None));
    }

    #[test]
    fn an_ipv6_address_works_at_once_and_has_its_own_flags_then() {
        let known = address(0x80 | MANAGES_TEMPORARY, &[(libc::IFA_ADDRESS, &[0xfd; 16])]);
        let flags =
            |payload: &[u8]| read(payload).iter().find(|(kind, _)| *kind == IFA_FLAGS).unwrap().1.clone();
        let at_once = NO_DUPLICATES | MANAGES_TEMPORARY;
        assert_eq!(flags(&known.at_once(&to())), at_once.to_ne_bytes());
        assert_eq!(flags(&known.lasting(&to()).unwrap()), MANAGES_TEMPORARY.to_ne_bytes());
    }

    #[test]
    fn a_label_that_is_the_name_or_does_not_fit_is_left_to_the_kernel() {
        assert_eq!(label(b"up0\0", "cni0"), None);
        assert_eq!(label(b"u:12345678901\0", "cni0"), None);
        assert_eq!(label(b"u:1234567890\0", "cni0").unwrap(), b"cni0:1234567890\0");
    }

    #[test]
    fn a_message_cut_anywhere_makes_no_panic() {
        let whole = address(0, &[(libc::IFA_LOCAL, &[10, 0, 0, 1]), (libc::IFA_CACHEINFO, &[0; 16])]);
        for length in 0..whole.message.len() {
            let cut = Address { message: whole.message[..length].to_vec(), ..whole.clone() };
            let _ = (cut.at_once(&to()), cut.lasting(&to()), cut.prefix(), cut.own_subnet());
        }
    }
}

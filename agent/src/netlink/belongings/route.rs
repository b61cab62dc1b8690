//! One route through an interface, as a message (`struct rtmsg`, linux/rtnetlink.h).

use std::net::IpAddr;

use nix::libc;
use serde::{Deserialize, Serialize};

use super::super::attribute::attribute;
use super::super::socket::{self, NetlinkError, RequestSocket};
use super::address::{Address, ip};
use super::octets;
use crate::nft::Prefix;

/// Bytes of `struct rtmsg`, `struct rtnexthop` and a header of attributes.
const RTMSG: usize = 12;
const NEXTHOP: usize = 8;
const HEADER: usize = 4;

/// `RTM_F_CLONED`: what the kernel has noted of one destination, no route.
const CLONED: u32 = 0x200;
/// `RTNH_F_ONLINK`: the gateway is taken to be there, whatever the subnets say.
const ONLINK: u8 = 4;
/// `RTPROT_KERNEL` and `RT_TABLE_LOCAL`.
const BY_KERNEL: u8 = 2;
const LOCAL: u32 = 255;

const RTA_VIA: u16 = 18;
const RTA_PREF: u16 = 20;
const RTA_ENCAP_TYPE: u16 = 21;
const RTA_ENCAP: u16 = 22;
const RTA_EXPIRES: u16 = 23;
const RTA_NH_ID: u16 = 30;

/// What a route is made with. The rest is the kernel's word on it.
const GIVEN: [u16; 13] = [
    libc::RTA_DST,
    libc::RTA_SRC,
    libc::RTA_OIF,
    libc::RTA_GATEWAY,
    libc::RTA_PRIORITY,
    libc::RTA_PREFSRC,
    libc::RTA_METRICS,
    libc::RTA_FLOW,
    libc::RTA_TABLE,
    RTA_VIA,
    RTA_PREF,
    RTA_ENCAP_TYPE,
    RTA_ENCAP,
];

/// Ticks of `rta_expires` in a second (`USER_HZ`).
const TICKS: u32 = 100;

/// A route, with all that it was made with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Route {
    /// For a person.
    text: String,
    /// The message that makes it.
    #[serde(with = "octets")]
    message: Vec<u8>,
    /// The interface that the message speaks of.
    index: u32,
}

/// Every route through an interface, in any table; of one by a next hop object only what it is.
pub(super) fn all(
    socket: &mut RequestSocket,
    index: u32,
) -> Result<Vec<Result<Route, String>>, NetlinkError> {
    let found = socket.dump(libc::RTM_GETROUTE, &[0; RTMSG], |payload| Some(parse(payload, index)))?;
    Ok(found.into_iter().flatten().collect())
}

/// What is read of a message.
#[derive(Debug, Default)]
struct Parts {
    destination: Option<IpAddr>,
    interface: Option<u32>,
    gateway: Option<IpAddr>,
    source: Option<IpAddr>,
    metric: u32,
    table: u32,
    by_another: bool,
    object: bool,
    several: Vec<u8>,
    expires: u32,
}

fn parts(message: &[u8]) -> Option<Parts> {
    let header: &[u8; RTMSG] = message.first_chunk()?;
    let mut parts = Parts { table: header[4].into(), ..Parts::default() };
    socket::attributes(message.get(RTMSG..)?, |kind, value| match kind {
        libc::RTA_DST => parts.destination = ip(value),
        libc::RTA_OIF => parts.interface = socket::number(value),
        libc::RTA_GATEWAY | RTA_VIA => (parts.gateway, parts.by_another) = (ip(value), true),
        libc::RTA_PREFSRC => parts.source = ip(value),
        libc::RTA_PRIORITY => parts.metric = socket::number(value).unwrap_or_default(),
        libc::RTA_TABLE => parts.table = socket::number(value).unwrap_or_default(),
        libc::RTA_MULTIPATH => (parts.several, parts.by_another) = (value.to_vec(), true),
        // struct rta_cacheinfo: rta_clntref, rta_lastuse, rta_expires …
        libc::RTA_CACHEINFO => parts.expires = value.get(8..).and_then(socket::number).unwrap_or_default(),
        RTA_EXPIRES => parts.expires = socket::number(value).unwrap_or_default(),
        RTA_NH_ID => parts.object = true,
        _ => {}
    });
    Some(parts)
}

/// The routes of a told one that lead through `index`. IPv4's equal ways are one route that is made and deleted as one; IPv6's
/// are as many.
fn parse(payload: &[u8], index: u32) -> Vec<Result<Route, String>> {
    let Some((header, parts)) = payload.first_chunk::<RTMSG>().zip(parts(payload)) else { return Vec::new() };
    let [family, bits, _, _, _, protocol, _, _, f0, f1, f2, f3] = *header;
    let flags = u32::from_ne_bytes([f0, f1, f2, f3]);
    let ways: Vec<_> = hops(&parts.several).filter(|(_, to, _)| *to == index).collect();
    let is_through = parts.interface == Some(index) || !ways.is_empty();
    if !is_through || flags & CLONED != 0 || (parts.table == LOCAL && protocol == BY_KERNEL) {
        return Vec::new();
    }
    let text = say(bits, &parts);
    if parts.object {
        return vec![Err(text)];
    }
    let route = |message| Ok(Route { text: text.clone(), message, index });
    if i32::from(family) == libc::AF_INET || ways.is_empty() {
        return vec![route(made_of(payload, &parts, None))];
    }
    ways.iter()
        .map(|(at, _, length)| route(made_of(payload, &parts, Some(&parts.several[*at..at + length]))))
        .collect()
}

fn say(bits: u8, parts: &Parts) -> String {
    let mut text = match parts.destination {
        Some(address) => format!("{address}/{bits}"),
        None => "default".to_owned(),
    };
    let said = [
        parts.gateway.map(|gateway| format!(" via {gateway}")),
        (parts.metric != 0).then(|| format!(" metric {}", parts.metric)),
        (parts.table != 254).then(|| format!(" table {}", parts.table)),
    ];
    text.extend(said.into_iter().flatten());
    text
}

/// The message that makes the route, by one of several ways or by what it says.
fn made_of(payload: &[u8], parts: &Parts, way: Option<&[u8]>) -> Vec<u8> {
    let mut message = payload[..RTMSG].to_vec();
    let onlink = message[8] & ONLINK;
    message[8..].copy_from_slice(&[onlink, 0, 0, 0]);
    socket::attributes(&payload[RTMSG..], |kind, value| {
        if kind == libc::RTA_MULTIPATH {
            message.extend(attribute(kind, &without_state(way.unwrap_or(value))));
        } else if GIVEN.contains(&kind) {
            message.extend(attribute(kind, value));
        }
    });
    if parts.expires != 0 {
        message.extend(attribute(RTA_EXPIRES, &parts.expires.div_ceil(TICKS).to_ne_bytes()));
    }
    message
}

/// Next hops without what the kernel says of them: that their interface is down, or has no carrier.
fn without_state(several: &[u8]) -> Vec<u8> {
    let mut ways = several.to_vec();
    for (at, ..) in hops(several) {
        // struct rtnexthop: rtnh_len, rtnh_flags, rtnh_hops, rtnh_ifindex.
        ways[at + 2] &= ONLINK;
    }
    ways
}

/// The next hops of `RTA_MULTIPATH`: where each begins, its interface, and its length in bytes.
fn hops(several: &[u8]) -> impl Iterator<Item = (usize, u32, usize)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let header: &[u8; NEXTHOP] = several.get(at..)?.first_chunk()?;
        let length = usize::from(u16::from_ne_bytes([header[0], header[1]]));
        let index = u32::from_ne_bytes([header[4], header[5], header[6], header[7]]);
        let begins = at;
        at += length.max(NEXTHOP).next_multiple_of(HEADER);
        (length >= NEXTHOP && begins + length <= several.len()).then_some((begins, index, length))
    })
}

impl Route {
    /// Whether it leads by somebody to whom another route has to lead.
    pub(super) fn leads_by_another(&self) -> bool {
        parts(&self.message).is_some_and(|parts| parts.by_another)
    }

    /// Whether it is the kernel's own to what holds on the link only.
    pub(super) fn is_of_link(&self) -> bool {
        let own = self.message.get(5) == Some(&BY_KERNEL);
        let to = parts(&self.message).and_then(|parts| parts.destination);
        own && matches!(to, Some(IpAddr::V6(v6)) if v6.is_unicast_link_local())
    }

    /// Whether the kernel makes it for one of these addresses.
    pub(super) fn comes_with(&self, addresses: &[Address]) -> bool {
        let Some(parts) = parts(&self.message) else { return true };
        let (bits, protocol) = (self.message[1], self.message[5]);
        let destination = parts.destination.map(|address| Prefix::new(address, bits));
        protocol == BY_KERNEL
            && !parts.by_another
            && destination.is_some_and(|to| addresses.iter().any(|address| address.own_subnet() == Some(to)))
    }

    /// Whether it is in the same place: table, destination, service, metric.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let place = |route: &Self| {
            let header: [u8; RTMSG] = *route.message.first_chunk()?;
            let Parts { destination, metric, table, .. } = parts(&route.message)?;
            Some((header[..4].to_vec(), destination, metric, table))
        };
        place(self) == place(other)
    }

    /// Whether it would go, or lead nowhere, without one of these addresses.
    pub(super) fn depends_on(&self, addresses: &[Address]) -> bool {
        let Some(parts) = parts(&self.message) else { return false };
        let is_of = |ip: IpAddr| {
            addresses.iter().filter_map(Address::subnet).any(|subnet| {
                let same = Prefix::new(ip, subnet.bits());
                same.is_v4() == subnet.is_v4() && same.first() == subnet.first()
            })
        };
        let is_one = |ip: IpAddr| addresses.iter().any(|address| address.prefix().address() == ip);
        parts.gateway.is_some_and(is_of) || parts.source.is_some_and(is_one)
    }

    /// The message that makes the route through this interface.
    pub(super) fn by(&self, index: u32) -> Vec<u8> {
        let mut message = self.message.clone();
        let old = self.index.to_ne_bytes();
        let mut places = Vec::new();
        let mut at = RTMSG;
        while let Some(header) = message.get(at..).and_then(|rest| rest.first_chunk::<HEADER>()) {
            let length = usize::from(u16::from_ne_bytes([header[0], header[1]]));
            let kind = u16::from_ne_bytes([header[2], header[3]]);
            let value = at + HEADER;
            match kind {
                libc::RTA_OIF => places.push(value),
                libc::RTA_MULTIPATH => {
                    let several = message.get(value..at + length).unwrap_or_default();
                    places.extend(hops(several).map(|(begins, ..)| value + begins + HEADER));
                }
                _ => {}
            }
            at += length.max(HEADER).next_multiple_of(HEADER);
        }
        for place in places {
            if let Some(bytes) = message.get_mut(place..place + 4).filter(|bytes| **bytes == old) {
                bytes.copy_from_slice(&index.to_ne_bytes());
            }
        }
        message
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `rtmsg` of IPv4's main table, static, unicast, with flags.
    fn told(flags: u8, attributes: &[(u16, &[u8])]) -> Vec<u8> {
        let mut payload = vec![2, 0, 0, 0, 254, 4, 0, 1, flags, 0, 0, 0];
        for (kind, value) in attributes {
            payload.extend(attribute(*kind, value));
        }
        payload
    }

    fn hop(index: u8, gateway: u8) -> Vec<u8> {
        let mut hop = vec![16, 0, 0, 0, index, 0, 0, 0];
        hop.extend(attribute(libc::RTA_GATEWAY, &[192, 0, 2, gateway]));
        hop
    }

    #[test]
    fn a_route_is_told_of_another_interface_with_everything_else_as_it_was() {
        let payload = told(
            ONLINK | 16,
            &[
                (libc::RTA_GATEWAY, &[192, 0, 2, 1]),
                (libc::RTA_OIF, &[7, 0, 0, 0]),
                (libc::RTA_PRIORITY, &[50, 0, 0, 0]),
                (libc::RTA_CACHEINFO, &[0; 32]),
            ],
        );
        let [Ok(route)] = &parse(&payload, 7)[..] else { panic!("one route") };
        assert_eq!(route.text, "default via 192.0.2.1 metric 50");
        let mut expected = told(
            ONLINK,
            &[
                (libc::RTA_GATEWAY, &[192, 0, 2, 1]),
                (libc::RTA_OIF, &[9, 0, 0, 0]),
                (libc::RTA_PRIORITY, &[50, 0, 0, 0]),
            ],
        );
        assert_eq!(route.by(9), expected);
        expected[28..32].copy_from_slice(&[7, 0, 0, 0]);
        assert!(parse(&payload, 8).is_empty() && route.leads_by_another());
    }

    #[test]
    fn of_equal_ways_those_by_the_interface_change_and_the_others_stay() {
        let several = [hop(7, 1), hop(8, 2)].concat();
        let payload = told(0, &[(libc::RTA_MULTIPATH, &several)]);
        let [Ok(route)] = &parse(&payload, 7)[..] else { panic!("one route") };
        assert_eq!(route.by(9), told(0, &[(libc::RTA_MULTIPATH, &[hop(9, 1), hop(8, 2)].concat())]));
        // IPv6 has a route for each.
        let mut payload = payload;
        payload[0] = 10;
        let [Ok(route)] = &parse(&payload, 8)[..] else { panic!("one route") };
        let mut expected = told(0, &[(libc::RTA_MULTIPATH, &hop(9, 2))]);
        expected[0] = 10;
        assert_eq!(route.by(9), expected);
    }

    #[test]
    fn what_the_kernel_notes_and_makes_by_itself_is_no_route_to_be_moved() {
        let through = [(libc::RTA_OIF, &[7, 0, 0, 0][..])];
        let mut local = told(0, &through);
        (local[4], local[5]) = (255, BY_KERNEL);
        assert!(parse(&local, 7).is_empty());
        let mut cloned = told(0, &through);
        cloned[9] = 2;
        assert!(parse(&cloned, 7).is_empty());
        let by_object = told(0, &[through[0], (RTA_NH_ID, &[1, 0, 0, 0])]);
        assert!(matches!(&parse(&by_object, 7)[..], [Err(text)] if text == "default"));
    }

    #[test]
    fn a_message_cut_anywhere_makes_no_panic() {
        let whole = told(0, &[(libc::RTA_OIF, &[7, 0, 0, 0]), (libc::RTA_MULTIPATH, &hop(7, 1))]);
        for length in 0..whole.len() {
            for route in parse(&whole[..length], 7).into_iter().flatten() {
                let _ = (route.by(9), route.is_same(&route), route.depends_on(&[]));
            }
            let cut = Route { text: String::new(), message: whole[..length].to_vec(), index: 7 };
            let _ = (cut.by(9), cut.comes_with(&[]));
        }
    }
}

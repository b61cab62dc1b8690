//! One route through an interface, as the kernel told it.

use std::net::IpAddr;

use ipnet::IpNet;
use netlink_packet_core::{NLA_TYPE_MASK, Nla as _};
use netlink_packet_route::AddressFamily;
use netlink_packet_route::route::{
    RouteAttribute, RouteFlags, RouteMessage, RouteNextHop, RouteNextHopFlags, RouteProtocol,
};
use nix::libc;
use serde::{Deserialize, Serialize};

use super::L3Address;
use super::wire;
use crate::connection::Connection;
use crate::error::NetlinkError;
use crate::route::{ip, routes};

/// `RT_TABLE_MAIN` and `RT_TABLE_LOCAL`.
const MAIN: u32 = 254;
const LOCAL: u32 = 255;

/// What a route is made with (linux/rtnetlink.h). The rest is the kernel's word on it.
const GIVEN: [u16; 14] = [
    libc::RTA_DST,
    libc::RTA_SRC,
    libc::RTA_OIF,
    libc::RTA_GATEWAY,
    libc::RTA_PRIORITY,
    libc::RTA_PREFSRC,
    libc::RTA_METRICS,
    libc::RTA_MULTIPATH,
    libc::RTA_FLOW,
    libc::RTA_TABLE,
    18, // RTA_VIA
    20, // RTA_PREF
    21, // RTA_ENCAP_TYPE
    22, // RTA_ENCAP
];

/// Ticks of `rta_expires` in a second (`USER_HZ`).
const TICKS: u32 = 100;

/// A route, with all that it was made with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct L3Route {
    /// For a person.
    text: String,
    /// The message that makes it.
    #[serde(with = "wire")]
    message: RouteMessage,
    /// The interface that the message speaks of.
    index: u32,
}

/// Every route through an interface, in any table; of one by a next hop object only what it is.
pub(super) fn all(
    connection: &mut Connection,
    index: u32,
) -> Result<Vec<Result<L3Route, String>>, NetlinkError> {
    let found = connection.list(routes(AddressFamily::Unspec))?.into_iter();
    Ok(found.flat_map(|message| through(&message, index)).collect())
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
    hops: Vec<RouteNextHop>,
    expires: u32,
}

fn parts(message: &RouteMessage) -> Parts {
    let mut parts = Parts { table: message.header.table.into(), ..Parts::default() };
    for attribute in &message.attributes {
        match attribute {
            RouteAttribute::Destination(address) => parts.destination = ip(address),
            RouteAttribute::Oif(index) => parts.interface = Some(*index),
            RouteAttribute::Gateway(address) => (parts.gateway, parts.by_another) = (ip(address), true),
            RouteAttribute::Via(_) => parts.by_another = true,
            RouteAttribute::PrefSource(address) => parts.source = ip(address),
            RouteAttribute::Priority(metric) => parts.metric = *metric,
            RouteAttribute::Table(table) => parts.table = *table,
            RouteAttribute::MultiPath(hops) => (parts.hops, parts.by_another) = (hops.clone(), true),
            RouteAttribute::CacheInfo(info) => parts.expires = info.expires,
            RouteAttribute::Expires(expires) => parts.expires = *expires,
            RouteAttribute::NhId(_) => parts.object = true,
            _ => {}
        }
    }
    parts
}

/// The routes of a told one that lead through `index`. IPv4's equal ways are one route that is made and deleted as one; IPv6's are as
/// many.
fn through(message: &RouteMessage, index: u32) -> Vec<Result<L3Route, String>> {
    let (header, parts) = (&message.header, parts(message));
    let ways: Vec<_> = parts.hops.iter().filter(|hop| hop.interface_index == index).collect();
    let is_through = parts.interface == Some(index) || !ways.is_empty();
    let is_kernels = parts.table == LOCAL && header.protocol == RouteProtocol::Kernel;
    if !is_through || header.flags.contains(RouteFlags::Cloned) || is_kernels {
        return Vec::new();
    }
    let text = say(header.destination_prefix_length, &parts);
    if parts.object {
        return vec![Err(text)];
    }
    let route = |way| Ok(L3Route { text: text.clone(), message: made_of(message, &parts, way), index });
    if header.address_family == AddressFamily::Inet || ways.is_empty() {
        return vec![route(None)];
    }
    ways.into_iter().map(|way| route(Some(way))).collect()
}

fn say(bits: u8, parts: &Parts) -> String {
    let mut text = match parts.destination {
        Some(address) => format!("{address}/{bits}"),
        None => "default".to_owned(),
    };
    let said = [
        parts.gateway.map(|gateway| format!(" via {gateway}")),
        (parts.metric != 0).then(|| format!(" metric {}", parts.metric)),
        (parts.table != MAIN).then(|| format!(" table {}", parts.table)),
    ];
    text.extend(said.into_iter().flatten());
    text
}

/// The message that makes the route, by one of several ways or by what it says.
fn made_of(told: &RouteMessage, parts: &Parts, way: Option<&RouteNextHop>) -> RouteMessage {
    let mut message = told.clone();
    message.header.flags &= RouteFlags::Onlink;
    message.attributes.retain(|attribute| GIVEN.contains(&(attribute.kind() & NLA_TYPE_MASK)));
    for hops in message.attributes.iter_mut().filter_map(multipath) {
        if let Some(way) = way {
            *hops = vec![way.clone()];
        }
        // Not what the kernel says of them: that their interface is down, or has no carrier.
        hops.iter_mut().for_each(|hop| hop.flags &= RouteNextHopFlags::Onlink);
    }
    if parts.expires != 0 {
        message.attributes.push(RouteAttribute::Expires(parts.expires.div_ceil(TICKS)));
    }
    message
}

fn multipath(attribute: &mut RouteAttribute) -> Option<&mut Vec<RouteNextHop>> {
    match attribute {
        RouteAttribute::MultiPath(hops) => Some(hops),
        _ => None,
    }
}

impl L3Route {
    /// Whether it leads by somebody to whom another route has to lead.
    pub(super) fn leads_by_another(&self) -> bool {
        parts(&self.message).by_another
    }

    fn is_kernels(&self) -> bool {
        self.message.header.protocol == RouteProtocol::Kernel
    }

    /// Whether it is the kernel's own to what holds on the link only.
    pub(super) fn is_of_link(&self) -> bool {
        let to = parts(&self.message).destination;
        self.is_kernels() && matches!(to, Some(IpAddr::V6(v6)) if v6.is_unicast_link_local())
    }

    /// Whether the kernel makes it for one of these addresses.
    pub(super) fn comes_with(&self, addresses: &[L3Address]) -> bool {
        let parts = parts(&self.message);
        let bits = self.message.header.destination_prefix_length;
        let destination = parts.destination.and_then(|address| IpNet::new(address, bits).ok());
        self.is_kernels()
            && !parts.by_another
            && destination.is_some_and(|to| addresses.iter().any(|address| address.own_subnet() == Some(to)))
    }

    /// Whether it is in the same place: table, destination, service, metric.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let place = |route: &Self| {
            let header = &route.message.header;
            let bits = (header.destination_prefix_length, header.source_prefix_length);
            let Parts { destination, metric, table, .. } = parts(&route.message);
            (header.address_family, bits, header.tos, destination, metric, table)
        };
        place(self) == place(other)
    }

    /// Whether it would go, or lead nowhere, without one of these addresses.
    pub(super) fn depends_on(&self, addresses: &[L3Address]) -> bool {
        let Parts { gateway, source, .. } = parts(&self.message);
        gateway.is_some_and(|gateway| addresses.iter().any(|address| address.reaches(gateway)))
            || source.is_some_and(|source| addresses.iter().any(|address| address.prefix().addr() == source))
    }

    /// The message that makes the route through this interface.
    pub(super) fn by(&self, index: u32) -> RouteMessage {
        let mut message = self.message.clone();
        let moved = |place: &mut u32| {
            if *place == self.index {
                *place = index;
            }
        };
        for attribute in &mut message.attributes {
            match attribute {
                RouteAttribute::Oif(interface) => moved(interface),
                RouteAttribute::MultiPath(hops) => {
                    hops.iter_mut().for_each(|hop| moved(&mut hop.interface_index));
                }
                _ => {}
            }
        }
        message
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribute::{attribute, emitted};
    use crate::request::Reply as _;

    const ONLINK: u8 = 4;
    const BY_KERNEL: u8 = 2;
    const RTA_NH_ID: u16 = 30;

    /// `rtmsg` of IPv4's main table, static, unicast, with flags.
    fn told(flags: u8, attributes: &[(u16, &[u8])]) -> Vec<u8> {
        let mut payload = vec![2, 0, 0, 0, 254, 4, 0, 1, flags, 0, 0, 0];
        payload.extend(attributes.iter().flat_map(|(kind, value)| attribute(*kind, value)));
        payload
    }

    fn parse(payload: &[u8], index: u32) -> Vec<Result<L3Route, String>> {
        RouteMessage::read(payload).map(|message| through(&message, index)).unwrap_or_default()
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
        let expected = told(
            ONLINK,
            &[
                (libc::RTA_GATEWAY, &[192, 0, 2, 1]),
                (libc::RTA_OIF, &[9, 0, 0, 0]),
                (libc::RTA_PRIORITY, &[50, 0, 0, 0]),
            ],
        );
        assert_eq!(emitted(&route.by(9)), expected);
        assert!(parse(&payload, 8).is_empty() && route.leads_by_another());
    }

    #[test]
    fn of_equal_ways_those_by_the_interface_change_and_the_others_stay() {
        let several = [hop(7, 1), hop(8, 2)].concat();
        let payload = told(0, &[(libc::RTA_MULTIPATH, &several)]);
        let [Ok(route)] = &parse(&payload, 7)[..] else { panic!("one route") };
        let moved = told(0, &[(libc::RTA_MULTIPATH, &[hop(9, 1), hop(8, 2)].concat())]);
        assert_eq!(emitted(&route.by(9)), moved);
        // IPv6 has a route for each.
        let mut payload = payload;
        payload[0] = 10;
        let [Ok(route)] = &parse(&payload, 8)[..] else { panic!("one route") };
        let mut expected = told(0, &[(libc::RTA_MULTIPATH, &hop(9, 2))]);
        expected[0] = 10;
        assert_eq!(emitted(&route.by(9)), expected);
    }

    #[test]
    fn what_the_crates_cannot_read_goes_along_as_it_was() {
        // An encapsulation of a type to come, a metric to come, and a preference.
        let encap = attribute(22, &attribute(1, &[7; 12]));
        let metrics = attribute(libc::RTA_METRICS, &attribute(99, &[1, 2, 3, 4]));
        let mut way = hop(7, 1);
        let encap = [encap, attribute(21, &[77, 0])].concat();
        way.extend(&encap);
        way[0] = way.len() as u8;
        let payload = [told(0, &[(libc::RTA_MULTIPATH, &way)]), encap, metrics, attribute(20, &[1])].concat();
        let [Ok(route)] = &parse(&payload, 7)[..] else { panic!("one route") };
        assert_eq!(emitted(&route.by(7)), payload);
        let file = serde_json::to_string(route).unwrap();
        assert_eq!(&serde_json::from_str::<L3Route>(&file).unwrap(), route);
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
                let _ = (route.by(9), route.is_same(&route), route.depends_on(&[]), route.comes_with(&[]));
            }
        }
    }
}

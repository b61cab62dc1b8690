//! The world beyond the bridges: an uplink, a client behind it, the node's ports that lead to containers, and the
//! connections that are there already.

use std::net::IpAddr;

use shunt_dataplane::abi::fragment::{FragmentKey, FragmentTranslation};
use shunt_dataplane::abi::translation::{
    Local, LocalKey, MAPPING_MASQUERADED, Mapping, MappingKey, Masquerade, Outlet, TRANSLATION_OPENER,
    Translation, TupleKey,
};
use shunt_dataplane::abi::{AddressKey, PORT_MASQUERADED, PortKey};
use shunt_dataplane::nat::connection::Shown;
use shunt_dataplane::tables::{Route, RouteQuery};
use shunt_dataplane::wire::address::{Address, L4Port, Mac};

use super::world::{BRIDGE, OTHER_BRIDGE, PLACES, Place};

/// The uplink, which no map knows.
pub const UPLINK: u32 = 3500;
/// The uplink's address.
pub const UPLINK_MAC: [u8; 6] = [2, 0, 0, 0, 0x0d, 0xac];
/// The node's addresses on it, with their prefixes' lengths.
pub const NODE: [(&str, u8); 2] = [("192.0.2.1", 24), ("2001:db8::1", 64)];
/// Somebody on the same link.
pub const CLIENT: [&str; 2] = ["192.0.2.9", "2001:db8::9"];
/// Somebody further away, to whom there is a route for containers only.
pub const BEYOND: [&str; 2] = ["198.51.100.9", "2001:db8:1::9"];
/// Somebody to whom the way is another interface, by which nothing masqueraded leaves.
pub const ASIDE: [&str; 2] = ["203.0.113.9", "2001:db8:2::9"];
/// What the link takes.
const MTU: u16 = 1500;

/// Sockets of the node have this port, of TCP and of UDP.
pub const SOCKET: u16 = 5300;

/// Of the containers' addresses, IPv4 mapped and IPv6.
const SUBNET: [u8; 2] = [96 + 16, 64];

const TCP: u8 = 6;
const UDP: u8 = 17;
const SCTP: u8 = 132;
/// Of IPv4 and of IPv6.
const ICMP: [u8; 2] = [1, 58];

/// The client's port in the connections that are there already.
const OLD: u16 = 40_000;
/// The same, of connections that have ended.
const ENDED: u16 = 40_001;
/// The same, where a half of the connection is missing.
const HALF: u16 = 40_002;

/// The same, of connections by another port of the node to the same one of the container.
const TAKEN: u16 = 40_004;

/// The same, of connections that were given the port behind it, since another has theirs.
const GIVEN: u16 = 40_005;

/// The same, where the halves are of two connections.
const MIXED: u16 = 40_003;

fn place(name: &str) -> &'static Place {
    PLACES.iter().find(|place| place.name == name).unwrap_or_else(|| panic!("no place named {name}"))
}

fn address(text: &str) -> Address {
    let ip: IpAddr = text.parse().unwrap_or_else(|_| panic!("no address: {text}"));
    ip.into()
}

/// TCP 8080 and UDP 8053 lead to tau's 80 and 53; TCP 8081 to tau from one address, and to zeta from any other; 8090 to zeta,
/// which has no IPv6 address there and takes small packets only; UDP 8091 and TCP 8092 to it by both of its addresses; 8099 to
/// somebody who is not there; 8070 to chi and 8071 to psi, which not everybody reaches; 8060 to tau, which sees the node there.
/// SCTP 8132 leads to tau's 90, and 9899 to the same.
pub fn mappings() -> Vec<(MappingKey, Mapping)> {
    let mapping = |(at, port): (&str, u16), protocol, name: &str, inner: u16, has_v6: bool| {
        let place = place(name);
        let [v4, v6] = place.addresses().map(Address::from);
        let anywhere = |address: Address| address.unspecified();
        let keys = if at.is_empty() { vec![anywhere(v4), anywhere(v6)] } else { vec![address(at)] };
        let keys = keys.into_iter().filter(move |key| has_v6 || key.is_v4());
        let value = Mapping {
            v4,
            v6: if has_v6 { v6 } else { Address::default() },
            bridge: BRIDGE,
            mac: place.mac(),
            port: inner.into(),
            bits: SUBNET,
            ..Mapping::default()
        };
        keys.map(move |address| (MappingKey { address, port: port.into(), protocol, pad: 0 }, value))
    };
    let mut mappings: Vec<_> = [
        mapping(("", 8080), TCP, "tau", 80, true),
        mapping(("", 8053), UDP, "tau", 53, true),
        mapping((NODE[0].0, 8081), TCP, "tau", 81, true),
        mapping(("", 8090), UDP, "zeta", 90, false),
        mapping(("", 8099), UDP, "zeta", 99, false),
        mapping(("", 8081), TCP, "zeta", 82, false),
        mapping(("", 8070), TCP, "chi", 70, true),
        mapping(("", 8071), TCP, "psi", 71, true),
        mapping(("", 8060), TCP, "tau", 60, true),
        mapping(("", 8132), SCTP, "tau", 90, true),
        mapping(("", 9899), SCTP, "tau", 9899, true),
        mapping(("", 8091), UDP, "zeta", 91, true),
        mapping(("", 8092), TCP, "zeta", 92, true),
    ]
    .into_iter()
    .flatten()
    .collect();
    for (key, value) in &mut mappings {
        match key.port.number() {
            8060 => value.flags = MAPPING_MASQUERADED,
            8099 => value.mac = Mac::new([2, 0, 0, 0, 0xff, 0xff]),
            _ => {}
        }
    }
    mappings
}

pub fn locals() -> Vec<(LocalKey, Local)> {
    NODE.map(|(text, _)| (LocalKey { address: address(text) }, Local::default())).into()
}

/// Both entries of each connection from the client to tau.
pub fn flows(now: u64) -> Vec<(TupleKey, Translation)> {
    let mut flows = Vec::new();
    let established = Shown::NOTHING.segment(0x10);
    let reset = established.segment(4);
    for (family, [node, client]) in [0, 1].map(|family| (family, [NODE[family].0, CLIENT[family]])) {
        for (protocol, outer, inner, client_port, shown) in [
            (TCP, 8080, 80, OLD, established),
            (UDP, 8053, 53, OLD, Shown::NOTHING.datagram()),
            (SCTP, 8132, 90, OLD, Shown::NOTHING.datagram()),
            (TCP, 8080, 80, ENDED, reset),
            (TCP, 8080, 80, HALF, established),
            (TCP, 8080, 80, MIXED, established),
            (TCP, 8079, 80, TAKEN, established),
            (TCP, 8080, 80, GIVEN, established),
        ] {
            let request = TupleKey {
                domain: 0,
                source_port: client_port.into(),
                destination_port: L4Port::from(outer),
                source: address(client),
                destination: address(node),
                protocol,
                pad: [0; 3],
            };
            let becomes = TupleKey {
                domain: BRIDGE,
                source_port: (client_port + u16::from(client_port == GIVEN)).into(),
                destination_port: L4Port::from(inner),
                destination: place("tau").addresses()[family].into(),
                ..request
            };
            let half = |becomes, flags| Translation {
                becomes,
                shown: shown.0,
                touched: now,
                begun: if client_port == MIXED { now - u64::from(flags) } else { now },
                packets: 0,
                bytes: 0,
                holder: 0,
                flags,
            };
            if client_port != HALF {
                flows.push((request, half(becomes, TRANSLATION_OPENER)));
            }
            flows.push((becomes.reversed(BRIDGE), half(request.reversed(0), 0)));
        }
    }
    flows.extend(neighbors(now));
    flows.extend(masqueraded(now));
    flows
}

/// Connections of alpha and beta with tau, by the node: the node's address with alpha's 42000 as 42001, and with beta's 41000;
/// all of them by each of the protocols.
fn neighbors(now: u64) -> Vec<(TupleKey, Translation)> {
    let mut flows = Vec::new();
    let ways = [
        (TCP, 8080, 80, Shown::NOTHING.segment(0x10)),
        (UDP, 8053, 53, Shown::NOTHING.datagram()),
        (SCTP, 8132, 90, Shown::NOTHING.datagram()),
    ];
    let clients = [("alpha", 42_000, 42_001), ("beta", 41_000, 41_000)];
    for ((name, port, given), (protocol, outer, inner, shown)) in
        clients.into_iter().flat_map(|client| ways.map(|way| (client, way)))
    {
        for family in [0, 1] {
            let request = TupleKey {
                domain: BRIDGE,
                source_port: L4Port::from(port),
                destination_port: L4Port::from(outer),
                source: place(name).addresses()[family].into(),
                destination: address(NODE[family].0),
                protocol,
                pad: [0; 3],
            };
            let becomes = TupleKey {
                source_port: L4Port::from(given),
                source: request.destination,
                destination_port: L4Port::from(inner),
                destination: place("tau").addresses()[family].into(),
                ..request
            };
            let half = |becomes, flags| Translation {
                becomes,
                shown: shown.0,
                touched: now,
                begun: now,
                packets: 0,
                bytes: 0,
                holder: 0,
                flags,
            };
            flows.push((request, half(becomes, TRANSLATION_OPENER)));
            flows.push((becomes.reversed(BRIDGE), half(request.reversed(BRIDGE), 0)));
        }
    }
    flows
}

/// What first fragments have become: datagram 0x7001 from the client to tau and from tau to the client, 0x7003 to zeta, and 0x7004
/// from alpha, by the node, to chi; of an echo and its reply 0x7005 from nu to the client and back. None is of long ago: a machine that has just been started has no such time.
pub fn fragments(now: u64) -> Vec<(FragmentKey, FragmentTranslation)> {
    let mut fragments = Vec::new();
    for family in [0, 1] {
        let [node, client] = [NODE[family].0, CLIENT[family]].map(address);
        let container = |name: &str| Address::from(place(name).addresses()[family]);
        for (identification, protocol, (domain, source, destination), becomes) in [
            (0x7001, UDP, (0, client, node), (BRIDGE, client, container("tau"))),
            (0x7001, UDP, (BRIDGE, container("tau"), client), (0, node, client)),
            (0x7003, UDP, (0, client, node), (BRIDGE, client, container("zeta"))),
            (0x7004, UDP, (BRIDGE, container("alpha"), node), (BRIDGE, node, container("chi"))),
            (0x7005, ICMP[family], (BRIDGE, container("nu"), client), (0, node, client)),
            (0x7005, ICMP[family], (0, client, node), (BRIDGE, client, container("nu"))),
        ] {
            let number = u16::to_be(identification);
            let identification = if family == 0 { [number, 0] } else { [0, number] };
            let key = FragmentKey { domain, identification, source, destination, protocol, pad: [0; 3] };
            let (domain, source, destination) = becomes;
            fragments.push((key, FragmentTranslation { source, destination, domain, pad: 0, seen: now }));
        }
    }
    fragments
}

/// The addresses whose connections are masqueraded, in a network of 10.9.0.0/16 and one of fd09::/64.
pub fn masquerades() -> Vec<(AddressKey, Masquerade)> {
    let places = PLACES.iter().filter(|place| place.restrictions & PORT_MASQUERADED != 0);
    let masks = ["255.255.0.0", "ffff:ffff:ffff:ffff::"].map(address);
    places
        .flat_map(|place| {
            place.addresses().into_iter().zip(masks).map(|(own, mask)| {
                let mask = if mask.is_v4() { masked_whole(mask) } else { mask };
                let key = AddressKey::new(BRIDGE, 0, own.into());
                (key, Masquerade { mask, ifindex: place.ifindex })
            })
        })
        .collect()
}

/// The same mask of a mapped address.
fn masked_whole(mask: Address) -> Address {
    let [_, _, _, last] = mask.words();
    Address::from_v6_words([u32::MAX, u32::MAX, u32::MAX, last])
}

/// What leaves by the uplink gets its addresses; 32768 to 60999 are for the node's own.
pub fn outlets() -> Vec<(PortKey, Outlet)> {
    let [v4, v6] = NODE.map(|(text, _)| address(text));
    vec![(PortKey { ifindex: UPLINK }, Outlet { v4, v6, low: 32_768, high: 60_999, seed: 0x5eed })]
}

/// Whether a socket of the node's own would take the answer to a packet with this tuple.
pub fn is_spoken_for(tuple: &TupleKey) -> bool {
    tuple.source_port.number() == SOCKET && (tuple.protocol == TCP || tuple.protocol == UDP)
}

/// Masqueraded connections of nu with the client: TCP 443 and UDP 53 from 40000, by the node's 20000; TCP 443 from 40001, over,
/// by 20001; from 40002, whoever had nu's address before, by 20002; from 40003, by an address that the node had, and 20003.
/// Another container's from 6000, by 5000. Echoes with the client of the first kind, the fourth and the last, without the 443.
fn masqueraded(now: u64) -> Vec<(TupleKey, Translation)> {
    let mut flows = Vec::new();
    let established = Shown::NOTHING.segment(0x10);
    let formerly = ["192.0.2.77", "2001:db8::77"];
    for family in [0, 1] {
        let nu = place("nu");
        for (protocol, port, from, given, shown, holder) in [
            (TCP, 443, OLD, 20_000, established, nu.ifindex),
            (UDP, 53, OLD, 20_000, Shown::NOTHING.datagram(), nu.ifindex),
            (TCP, 443, ENDED, 20_001, established.segment(4), nu.ifindex),
            (TCP, 443, HALF, 20_002, established, 1999),
            (TCP, 443, MIXED, 20_003, established, nu.ifindex),
            (TCP, 443, 6000, 5000, established, place("omicron").ifindex),
            (ICMP[family], 0, OLD, 20_000, Shown::NOTHING.datagram(), nu.ifindex),
            (ICMP[family], 0, HALF, 20_002, Shown::NOTHING.datagram(), 1999),
            (ICMP[family], 0, 6000, 5000, Shown::NOTHING.datagram(), place("omicron").ifindex),
        ] {
            let source = if from == 6000 { place("omicron") } else { nu };
            let request = TupleKey {
                domain: BRIDGE,
                source_port: from.into(),
                destination_port: L4Port::from(port),
                source: source.addresses()[family].into(),
                destination: address(CLIENT[family]),
                protocol,
                pad: [0; 3],
            };
            let node = if from == MIXED { formerly[family] } else { NODE[family].0 };
            let becomes =
                TupleKey { domain: 0, source_port: L4Port::from(given), source: address(node), ..request };
            let half = |becomes, flags| Translation {
                becomes,
                shown: shown.0,
                touched: now,
                begun: now,
                packets: 0,
                bytes: 0,
                holder,
                flags,
            };
            flows.push((request, half(becomes, TRANSLATION_OPENER)));
            flows.push((becomes.reversed(0), half(request.reversed(BRIDGE), 0)));
        }
    }
    flows
}

/// The kernel's routes: to the subnets of a client and of two others, and to alpha.
pub fn route(query: &RouteQuery) -> Option<Route> {
    let is_in =
        |known: [&str; 2]| known.iter().any(|known| are_in_one_subnet(address(known), query.destination));
    let is_alphas = place("alpha").addresses().map(Address::from).contains(&query.destination);
    let is_nodes = NODE.iter().any(|(own, _)| address(own) == query.destination);
    // Only of the subnet that is an interface's own the kernel knows who is everybody there.
    let is_everybody = query.destination == address("192.0.2.255");
    let ifindex = match () {
        () if is_nodes || is_everybody => return None,
        () if is_alphas => BRIDGE,
        () if is_in(CLIENT) || is_in(BEYOND) && is_containers(query.source) => UPLINK,
        () if is_in(ASIDE) => OTHER_BRIDGE,
        () => return None,
    };
    (query.from == BRIDGE && query.bytes <= MTU).then_some(Route { ifindex, next_hop: query.destination })
}

/// In 24 bits of IPv4, and 64 of IPv6.
fn are_in_one_subnet(one: Address, other: Address) -> bool {
    let bytes = if one.is_v4() { 12 + 3 } else { 8 };
    one.octets()[..bytes] == other.octets()[..bytes]
}

/// Those in 10.9.0.0/16 and fd09::/64, which the kernel's rule is for.
fn is_containers(source: Address) -> bool {
    let (known, bytes) = if source.is_v4() { ("10.9.0.0", 12 + 2) } else { ("fd09::", 8) };
    address(known).octets()[..bytes] == source.octets()[..bytes]
}

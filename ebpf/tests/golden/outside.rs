//! The world beyond the bridges: an uplink, a client behind it, and the node's host ports.

use std::net::IpAddr;

use shunt_dataplane::abi::translation::{
    INTERFACE_BITS, LOCAL_BITS, Local, LocalKey, MAPPING_HEEDED, MAPPING_MASQUERADED, MAPPING_SOURCE_KEPT,
    Mapping, MappingKey, Masquerade, Outlet, SOURCE_BITS, SourceKey, TupleKey,
};
use shunt_dataplane::abi::{
    AddressKey, Alias, AliasKey, PORT_MASQUERADED, PortKey, REVERSE_PATH_LOOSE, REVERSE_PATH_NONE,
    REVERSE_PATH_STRICT, ReversePath,
};
use shunt_dataplane::tables::{Route, RouteQuery, Unrouted};
use shunt_dataplane::wire::address::{Address, L4Port, Mac};

pub use super::connections::{assured, flows, fragments};
use super::world::{BRIDGE, OTHER_BRIDGE, PLACES, Place};

/// The uplink, which no map knows.
pub const UPLINK: u32 = 3500;
/// The uplink's address.
pub const UPLINK_MAC: [u8; 6] = [2, 0, 0, 0, 0x0d, 0xac];
/// The node's addresses on it, with their prefixes' lengths.
pub const NODE: [(&str, u8); 2] = [("192.0.2.1", 24), ("2001:db8::1", 64)];
/// Further addresses of it, with the lengths of the prefixes in which they are nearer.
pub const SECOND: [(&str, u8); 2] = [("192.0.2.65", 26), ("2001:db8::4:1", 112)];
/// The bridge's own addresses, towards stau.
pub const GATEWAY: [&str; 2] = ["10.9.255.254", "fd09::fffe"];
/// Somebody on the same link.
pub const CLIENT: [&str; 2] = ["192.0.2.9", "2001:db8::9"];
/// Somebody further away, to whom there is a route for containers only.
pub const BEYOND: [&str; 2] = ["198.51.100.9", "2001:db8:1::9"];
/// Somebody to whom the way is another interface, by which nothing masqueraded leaves.
pub const ASIDE: [&str; 2] = ["203.0.113.9", "2001:db8:2::9"];
/// Interfaces at which the kernel filters sources strictly, and loosely, and the two hops of a multipath route.
pub const FILTERED: [(&str, u32); 4] = [("strict", 3501), ("loose", 3502), ("hop1", 3503), ("hop2", 3504)];
/// The networks that the route on the link of each of them leads to.
pub const BEHIND: [&str; 4] = ["198.18.1.0", "198.18.2.0", "198.18.3.0", "198.18.4.0"];
/// The network to which the two hops lead, each by the gateway behind it.
pub const MULTIPATH: &str = "198.18.5.0";
/// What the node's own packets come from.
const LOOPBACK: u32 = 1;
/// What the link takes.
const MTU: u16 = 1500;

/// Sockets of the node have this port, of TCP and of UDP.
pub const SOCKET: u16 = 5300;

/// Of the containers' addresses, IPv4 mapped and IPv6.
const SUBNET: [u8; 2] = [96 + 16, 64];

pub(super) const TCP: u8 = 6;
pub(super) const UDP: u8 = 17;
pub(super) const SCTP: u8 = 132;
pub(super) fn place(name: &str) -> &'static Place {
    PLACES.iter().find(|place| place.name == name).unwrap_or_else(|| panic!("no place named {name}"))
}

pub(super) fn address(text: &str) -> Address {
    let ip: IpAddr = text.parse().unwrap_or_else(|_| panic!("no address: {text}"));
    ip.into()
}

/// TCP 8080 and UDP 8053 lead to tau's 80 and 53; TCP 8081 to tau from one address, and to zeta from any other; 8090 to zeta,
/// which has no IPv6 address there and takes small packets only; UDP 8091 and TCP 8092 to it by both of its addresses; 8099 to
/// somebody who is not there; 8070 to chi and 8071 to psi, which not everybody reaches; 8072 to heta, whose port does not forward; 8060 to tau, which sees the node there; 8061 to
/// alpha's address, which tau had before; 8095 to nu, which is masqueraded; 8063 to stau, which sees who asks, and UDP 8064 to it, which sees its gateway; 8066 to tau, where others' rules are asked.
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
        mapping(("", 8072), TCP, "heta", 72, true),
        mapping(("", 8060), TCP, "tau", 60, true),
        mapping(("", 8132), SCTP, "tau", 90, true),
        mapping(("", 9899), SCTP, "tau", 9899, true),
        mapping(("", 8091), UDP, "zeta", 91, true),
        mapping(("", 8092), TCP, "zeta", 92, true),
        mapping(("", 8061), TCP, "alpha", 61, true),
        mapping(("", 8095), TCP, "nu", 95, true),
        mapping(("", 8063), TCP, "stau", 63, true),
        mapping(("", 8063), UDP, "stau", 63, true),
        mapping(("", 8064), UDP, "stau", 64, true),
        mapping(("", 8066), TCP, "tau", 66, true),
        mapping(("", 8066), UDP, "tau", 66, true),
    ]
    .into_iter()
    .flatten()
    .collect();
    for (key, value) in &mut mappings {
        match key.port.number() {
            8060 => value.flags = MAPPING_MASQUERADED,
            8063 => value.flags = MAPPING_SOURCE_KEPT,
            8066 => value.flags = MAPPING_HEEDED,
            // It has another MAC address by now: its port's station is tau's.
            8061 => value.mac = place("tau").mac(),
            8099 => value.mac = Mac::new([2, 0, 0, 0, 0xff, 0xff]),
            _ => {}
        }
    }
    mappings
}

/// The node's addresses, and prefixes that are local by route (`ip route add local`).
pub const ANY_IP: [(&str, u32); 2] = [("198.18.0.0", 120), ("2001:db8:a::", 48)];

/// Prefixes that are the node's, with their bits.
pub fn locals() -> Vec<(u32, LocalKey, Local)> {
    let own = NODE.map(|(text, _)| (text, LOCAL_BITS));
    let all = own.into_iter().chain(ANY_IP);
    all.map(|(text, bits)| (bits, LocalKey { address: address(text) }, Local::default())).collect()
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

/// What leaves by the uplink gets an address of its; 32768 to 60999 are for the node's own.
pub fn outlets() -> Vec<(AddressKey, Outlet)> {
    let outlet = Outlet { low: 32_768, high: 60_999, seed: 0x5eed };
    let own = NODE.map(|(text, _)| text).into_iter().chain(SECOND.map(|(text, _)| text));
    own.map(|text| (AddressKey::new(UPLINK, 0, address(text)), outlet)).collect()
}

/// Which of them: bits of the prefix, prefix, and the address.
pub fn sources() -> Vec<(u32, SourceKey, Address)> {
    let source = |bits: u8, (own, _): (&str, u8)| {
        let own = address(own);
        let mapped = if own.is_v4() { 96 } else { 0 };
        (INTERFACE_BITS + mapped + u32::from(bits), SourceKey { ifindex: UPLINK, address: own }, own)
    };
    let of_rest = |own| {
        let (bits, mut key, source) = source(0, own);
        key.address = source.unspecified();
        (bits, key, source)
    };
    let to_stau = place("stau").addresses().into_iter().zip(GATEWAY).map(|(to, own)| {
        let key = SourceKey { ifindex: BRIDGE, address: to.into() };
        (SOURCE_BITS, key, address(own))
    });
    NODE.map(of_rest).into_iter().chain(SECOND.map(|own| source(own.1, own))).chain(to_stau).collect()
}

/// The filters.
pub fn reverse_paths() -> Vec<(PortKey, ReversePath)> {
    let filter = |(name, ifindex): (&str, u32)| {
        let filter = match name {
            "loose" => REVERSE_PATH_LOOSE,
            // It is known for the other hop's sake.
            "hop1" => REVERSE_PATH_NONE,
            _ => REVERSE_PATH_STRICT,
        };
        let group = if name.starts_with("hop") { 7 } else { 0 };
        (PortKey { ifindex }, ReversePath { filter, group })
    };
    FILTERED.map(filter).into()
}

/// The port 40053 of the node asks tau's port 53 by its first name, and by the alias 61053 too.
pub fn aliases(now: u64) -> Vec<(AliasKey, Alias)> {
    let names = NODE.map(|(own, _)| address(own));
    let alias = |(of, name): (IpAddr, Address)| {
        let key = AliasKey { address: of.into(), port: 61_053.into(), pad: [0; 2] };
        let [name_port, socket_port, port] = [8053, 40_053, 53].map(L4Port::from);
        let alias = Alias { socket: 1, asked: now, name, name_port, socket_port, port, pad: [0; 2] };
        (key, alias)
    };
    place("tau").addresses().into_iter().zip(names).map(alias).collect()
}

/// What answers the kernel's own: datagrams of the node's 8053 to the client's 5060, and of 7001 to 123.
pub fn own_claims() -> Vec<TupleKey> {
    let ends = NODE.map(|(own, _)| own).into_iter().zip(CLIENT);
    let answers = |(own, client)| {
        [(8053, 5060), (7001, 123)].map(|(port, peer): (u16, u16)| TupleKey {
            domain: 0,
            source_port: peer.into(),
            destination_port: port.into(),
            source: address(client),
            destination: address(own),
            protocol: UDP,
            pad: [0; 3],
        })
    };
    ends.flat_map(answers).collect()
}

/// Whether a socket of the node's own would take the answer to a packet with this tuple.
pub fn has_socket(tuple: &TupleKey) -> bool {
    tuple.source_port.number() == SOCKET && (tuple.protocol == TCP || tuple.protocol == UDP)
}

/// The kernel's routes: to the subnets of a client and of two others, to alpha, and behind the interfaces with a filter.
pub fn route(query: &RouteQuery) -> Result<Route, Unrouted> {
    let is_in =
        |known: [&str; 2]| known.iter().any(|known| are_in_one_subnet(address(known), query.destination));
    let is_alphas = place("alpha").addresses().map(Address::from).contains(&query.destination);
    let is_nodes = NODE.iter().any(|(own, _)| address(own) == query.destination);
    // Only of the subnet that is an interface's own the kernel knows who is everybody there.
    let is_everybody = query.destination == address("192.0.2.255");
    let is_own = query.from == LOOPBACK;
    let behind = BEHIND.iter().position(|known| are_in_one_subnet(address(known), query.destination));
    let mut next_hop = query.destination;
    let ifindex = match behind {
        Some(which) => FILTERED[which].1,
        // The kernel chooses one of the two; which, is the same to the programs.
        None if are_in_one_subnet(address(MULTIPATH), query.destination) => {
            next_hop = address("198.18.3.1");
            3503
        }
        _ if is_nodes || is_everybody => return Err(Unrouted::NoRoute),
        _ if is_alphas => BRIDGE,
        _ if is_in(CLIENT) || is_in(BEYOND) && is_containers(query.source) => UPLINK,
        _ if is_in(ASIDE) => OTHER_BRIDGE,
        _ => return Err(Unrouted::NoRoute),
    };
    if query.from != BRIDGE && !is_own {
        return Err(Unrouted::NoRoute);
    }
    if query.bytes > MTU { Err(Unrouted::TooBig(MTU)) } else { Ok(Route { ifindex, next_hop }) }
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

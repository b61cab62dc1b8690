//! A bridge with more than twenty containers on it, a second bridge, a third whose ports are in VLANs, and what the maps say
//! about them.

use shunt_dataplane::abi::policer::{PRICED, Policer, SLOT_BITS, SUBNET_BITS, Storm, SubnetKey, storm_slot};
use shunt_dataplane::abi::vlan::VID_ANY;
use shunt_dataplane::abi::{
    AFFINITY_APART, AFFINITY_FAST, AFFINITY_LEARN, AFFINITY_LOOKUP, AddressKey, End, FlowKey, LinkLocal,
    Owner, PORT_ALONE, PORT_ANSWERS_NEIGHBORS, PORT_AWAY, PORT_BLOCKED, PORT_FOREIGN, PORT_GUARDED,
    PORT_HEEDED, PORT_IP_CHECK, PORT_ISOLATED, PORT_MAC_CHECK, PORT_MAPPED, PORT_MASQUERADED, PORT_POLICED,
    PORT_SAME_BRIDGE, PORT_SHARED, PORT_STORM, PORT_SUBNETS, PORT_TRUSTED, PORT_WIRE, PORT_WITHIN, PORT_XDP,
    Port, PortKey, STATION_ALONE, STATION_APART, STATION_ASIDE, STATION_BLOCKED, STATION_HOST,
    STATION_ISOLATED, STATION_MOVED, STATION_PEER_UP, STATION_QUEUED, STATION_SAME_BRIDGE, Station,
    StationKey,
};
use shunt_dataplane::wire::address::{L4Port, Mac};

use super::{interfaces, members, spared, uplinks};

/// An interface of the world: the host end of a container's veth, or a bridge.
pub struct Place {
    pub name: &'static str,
    pub ifindex: u32,
    pub bridge: u32,
    /// The VLAN of its untagged frames.
    pub vid: u16,
    pub affinity: u32,
    pub mtu: u32,
    pub station: u32,
    pub restrictions: u32,
}

pub const fn container(name: &'static str, ifindex: u32) -> Place {
    Place {
        name,
        ifindex,
        bridge: BRIDGE,
        vid: 0,
        affinity: AFFINITY_FAST,
        mtu: 1500,
        station: STATION_PEER_UP,
        restrictions: 0,
    }
}

pub const BRIDGE: u32 = 1000;
pub const OTHER_BRIDGE: u32 = 2000;
/// The other bridge knows VLANs, and all of its ports are in this one.
pub const OTHER_VID: u16 = 7;

/// Everything that has programs, in the order of its counter slots (which begin at 1).
pub const PLACES: [Place; 42] = [
    Place { station: STATION_HOST, ..container("bridge", BRIDGE) },
    container("alpha", 1001),
    container("beta", 1002),
    // Its peer is not up yet.
    Place { station: 0, ..container("gamma", 1003) },
    // Has had flows of the kernel's.
    Place { affinity: AFFINITY_LOOKUP, ..container("delta", 1004) },
    // Programs were attached while it was in use.
    Place { affinity: AFFINITY_LEARN, ..container("epsilon", 1005) },
    // Takes small packets only.
    Place { mtu: 576, ..container("zeta", 1006) },
    Place { station: STATION_HOST, bridge: OTHER_BRIDGE, vid: OTHER_VID, ..container("other", OTHER_BRIDGE) },
    Place { bridge: OTHER_BRIDGE, vid: OTHER_VID, ..container("omega", 2001) },
    // Two that must not meet.
    Place {
        station: STATION_PEER_UP | STATION_ISOLATED,
        restrictions: PORT_ISOLATED,
        ..container("eta", 1007)
    },
    Place {
        station: STATION_PEER_UP | STATION_ISOLATED,
        restrictions: PORT_ISOLATED,
        ..container("theta", 1008)
    },
    // May not pretend to be another.
    Place { restrictions: PORT_MAC_CHECK, ..container("iota", 1009) },
    // May not speak for another's address.
    Place { restrictions: PORT_IP_CHECK, ..container("mu", 1012) },
    // Somebody else shapes what it sends.
    Place { restrictions: PORT_SHARED, ..container("kappa", 1010) },
    // Somebody else shapes what it is sent.
    Place { station: STATION_PEER_UP | STATION_QUEUED, ..container("lambda", 1011) },
    // Two that somebody else has put onto the bridge: stations may be behind them, none is known.
    Place { restrictions: PORT_FOREIGN | PORT_WIRE, ..container("wire", 1013) },
    Place { restrictions: PORT_FOREIGN, ..container("intruder", 1014) },
    // Limited: may send more.
    Place { restrictions: PORT_POLICED, ..container("xi", 1015) },
    // Limited: has sent too much.
    Place { restrictions: PORT_POLICED, ..container("pi", 1016) },
    // Limited: has sent nothing for long.
    Place { restrictions: PORT_POLICED, ..container("rho", 1017) },
    // Ports of the node lead to it.
    Place { restrictions: PORT_MAPPED, ..container("tau", 1018) },
    // Nobody but the node reaches it.
    Place {
        station: STATION_PEER_UP | STATION_SAME_BRIDGE | STATION_ALONE,
        restrictions: PORT_SAME_BRIDGE | PORT_ALONE,
        ..container("chi", 1019)
    },
    // Nobody of another bridge reaches it.
    Place {
        station: STATION_PEER_UP | STATION_SAME_BRIDGE,
        restrictions: PORT_SAME_BRIDGE,
        ..container("psi", 1020)
    },
    // Has broadcast too much.
    Place { restrictions: PORT_STORM, ..container("phi", 1021) },
    // Has sent too much to all but some.
    Place { restrictions: PORT_POLICED | PORT_SUBNETS, ..container("upsilon", 1022) },
    // What it sends to the world gets the node's address.
    Place { restrictions: PORT_MASQUERADED, ..container("nu", 1023) },
    // The same, and programs were attached while it was in use.
    Place { affinity: AFFINITY_LEARN, restrictions: PORT_MASQUERADED, ..container("omicron", 1024) },
    // The same, and somebody else shapes what it sends.
    Place { restrictions: PORT_MASQUERADED | PORT_SHARED, ..container("sigma", 1025) },
    // The same, and restricted.
    Place { restrictions: PORT_MASQUERADED | PORT_GUARDED, ..container("digamma", 1026) },
    // As mu, and it has chosen a link-local address long ago, and just now.
    Place { restrictions: PORT_IP_CHECK, ..container("san", 1027) },
    Place { restrictions: PORT_IP_CHECK, ..container("sampi", 1028) },
    // As mu, and it may be a router and a DHCP server.
    Place { restrictions: PORT_IP_CHECK | PORT_TRUSTED, ..container("koppa", 1029) },
    // Its station was heard at another port since.
    Place { station: STATION_PEER_UP | STATION_MOVED, restrictions: PORT_AWAY, ..container("sho", 1030) },
    // Its own end has an XDP program.
    Place { station: STATION_PEER_UP | STATION_QUEUED, restrictions: PORT_XDP, ..container("tsan", 1031) },
    // The kernel's bridge judges what it sends and is sent.
    Place {
        station: STATION_PEER_UP | STATION_ASIDE,
        restrictions: PORT_SHARED,
        ..container("stigma", 1032)
    },
    // Its port does not forward; it has host ports.
    Place {
        station: STATION_PEER_UP | STATION_ASIDE | STATION_BLOCKED,
        restrictions: PORT_SHARED | PORT_BLOCKED | PORT_MAPPED,
        ..container("heta", 1033)
    },
    // It answers neighbours directly that ask it by its host ports.
    Place {
        affinity: AFFINITY_LOOKUP,
        restrictions: PORT_MAPPED | PORT_ANSWERS_NEIGHBORS,
        ..container("stau", 1034)
    },
    // There was no room for one of the kernel's flows that it has begun.
    Place { affinity: AFFINITY_APART, station: STATION_PEER_UP | STATION_APART, ..container("kai", 1035) },
    // It has as many of the kernel's flows as it may have.
    container("ou", 1036),
    // Others have rules for what these send and are sent.
    Place { affinity: AFFINITY_LOOKUP, restrictions: PORT_HEEDED, ..container("lex", 1037) },
    Place { affinity: AFFINITY_LOOKUP, restrictions: PORT_HEEDED, ..container("rex", 1038) },
    Place { affinity: AFFINITY_LOOKUP, restrictions: PORT_HEEDED | PORT_IP_CHECK, ..container("vox", 1039) },
];

/// All places: those of [`PLACES`], then those in VLANs, then VLAN interfaces, then those of a bridge with an uplink, then those of bridges
/// that spare.
pub fn places() -> impl Iterator<Item = &'static Place> + Clone {
    let places = PLACES.iter().chain(&members::PLACES).chain(&interfaces::PLACES);
    places.chain(&uplinks::PLACES).chain(&spared::PLACES)
}

/// The place with this name; `stranger` is an interface that no map knows, and so are `uplink` and those with a filter.
pub fn ifindex(name: &str) -> u32 {
    if name == "uplink" {
        return super::outside::UPLINK;
    }
    if let Some((_, ifindex)) = super::outside::FILTERED.into_iter().find(|(other, _)| *other == name) {
        return ifindex;
    }
    if let Some((_, ifindex)) =
        [("stranger", 3000), ("master", interfaces::MASTER), ("parent", interfaces::PARENT)]
            .into_iter()
            .find(|(other, _)| *other == name)
    {
        return ifindex;
    }
    places().find(|place| place.name == name).unwrap_or_else(|| panic!("no place named {name}")).ifindex
}

/// The address of any interface of the world.
pub fn mac(ifindex: u32) -> [u8; 6] {
    if ifindex == super::outside::UPLINK {
        return super::outside::UPLINK_MAC;
    }
    let [_, _, high, low] = ifindex.to_be_bytes();
    [2, 0, 0, 0, high, low]
}

impl Place {
    pub fn slot(&self) -> u32 {
        let at = places().position(|place| place.ifindex == self.ifindex).expect("one of PLACES");
        u32::try_from(at).expect("few places") + 1
    }

    /// `02:00:00:00:` and the ifindex: 1001 is `02:00:00:00:03:e9`.
    pub fn mac(&self) -> Mac {
        Mac::new(mac(self.ifindex))
    }

    /// `10.9.` and the ifindex, `fd09::` and the ifindex.
    pub fn addresses(&self) -> [std::net::IpAddr; 2] {
        let [_, _, high, low] = self.ifindex.to_be_bytes();
        let v6 = [0xfd09, 0, 0, 0, 0, 0, 0, u16::from_be_bytes([high, low])];
        [std::net::Ipv4Addr::new(10, 9, high, low).into(), std::net::Ipv6Addr::from(v6).into()]
    }
}

pub fn ports() -> Vec<(PortKey, Port)> {
    places()
        .map(|place| {
            let port = Port {
                bridge: place.bridge,
                slot: place.slot(),
                affinity: place.affinity,
                flags: place.restrictions,
                vid: place.vid,
                mac: place.mac(),
            };
            (PortKey { ifindex: place.ifindex }, port)
        })
        .collect()
}

/// The pure code's clock.
pub const NOW: u64 = 1_000_000_000;

/// Further ahead than any clock of a test gets.
pub const FAR: u64 = 1 << 62;

/// The counter slot of a place.
pub fn slot(name: &str) -> u32 {
    PLACES.iter().find(|place| place.name == name).expect("a place").slot()
}

/// What limited places may send, by slot. A nanosecond a byte; the one that may send more is tolerated although all is
/// due far ahead, so that what it is charged does not depend on the clock.
pub fn policers() -> Vec<(u32, Policer)> {
    let policer = |due, tolerance| Policer { due, price: PRICED, tolerance };
    let packets = |tolerance| Policer { due: FAR, price: 500, tolerance };
    vec![
        (slot("xi"), policer(FAR, u64::MAX)),
        (slot("pi"), policer(FAR, 1_000)),
        (slot("rho"), policer(0, 1_000)),
        (slot("upsilon"), policer(FAR, 1_000)),
        (storm_slot(slot("phi"), Storm::Broadcast), packets(1_000)),
        (storm_slot(slot("phi"), Storm::Multicast), packets(u64::MAX)),
    ]
}

/// Whom the limits of some subnets are for: bits of the prefix, prefix, and whether it is limited.
pub fn subnets() -> Vec<(u32, SubnetKey, u32)> {
    let slot = PLACES.iter().find(|place| place.name == "upsilon").expect("a place").slot();
    let subnet = |bits, address: &str| {
        let address: std::net::IpAddr = address.parse().expect("an address");
        let v4 = if address.is_ipv4() { 96 } else { 0 };
        (SLOT_BITS + v4 + bits, SubnetKey { slot, address: address.into() }, 0)
    };
    let rest = (SLOT_BITS, SubnetKey { slot, ..SubnetKey::default() }, 1);
    // To beta by IPv4, and by IPv6 to it and the two beside it.
    let subnets = vec![rest, subnet(32, "10.9.3.234"), subnet(126, "fd09::3e8")];
    assert!(subnets.iter().all(|(bits, ..)| *bits <= SUBNET_BITS));
    subnets
}

pub fn stations() -> Vec<(StationKey, Station)> {
    places()
        .filter(|place| place.restrictions & (PORT_FOREIGN | PORT_WIRE) == 0)
        .map(|place| {
            let vid = if members::is_in_many(place) { VID_ANY } else { place.vid };
            let is_within = place.restrictions & PORT_WITHIN != 0;
            let mac = if is_within { Mac::default() } else { place.mac() };
            let key = StationKey { bridge: place.bridge, vid, mac };
            let station =
                Station { ifindex: place.ifindex, slot: place.slot(), mtu: place.mtu, flags: place.station };
            (key, station)
        })
        .chain(members::shared_mac())
        .collect()
}

pub fn addresses() -> Vec<(AddressKey, Owner)> {
    places()
        .filter(|place| place.station != STATION_HOST && place.restrictions & PORT_FOREIGN == 0)
        .flat_map(|place| {
            place.addresses().map(|address| {
                let key = AddressKey::new(place.bridge, place.vid, address.into());
                (key, Owner { ifindex: place.ifindex })
            })
        })
        .chain(members::shared_address())
        .collect()
}

/// San has fe80::a, and sampi has just asked for fe80::b: no clock gets past that.
pub fn link_locals(now: u64) -> Vec<(PortKey, LinkLocal)> {
    let chosen = |name, last, since| {
        let address = std::net::IpAddr::from(std::net::Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, last));
        (PortKey { ifindex: ifindex(name) }, LinkLocal { address: address.into(), since })
    };
    vec![chosen("san", 10, now.saturating_sub(10_000_000_000)), chosen("sampi", 11, now + 1_000_000_000_000)]
}

/// Nu's port 5353 was asked by the client's port 4001, and alpha's port 53 and the client's port 5060 by the node's 8053, over both families.
pub fn incoming_flows() -> Vec<FlowKey> {
    let asked = [
        ("nu", 5353, super::outside::CLIENT, 4001),
        ("alpha", 53, super::outside::NODE.map(|(own, _)| own), 8053),
    ];
    let flows = |(name, port, askers, from): (&str, u16, [&str; 2], u16)| {
        let place = PLACES.iter().find(|place| place.name == name).expect("a place");
        let asker = |text: &str| text.parse::<std::net::IpAddr>().expect("an address");
        place.addresses().into_iter().zip(askers.map(asker)).map(move |(own, asker)| {
            let own = End { address: own.into(), port: L4Port::from(port) };
            FlowKey::of(BRIDGE, 17, own, End { address: asker.into(), port: L4Port::from(from) })
        })
    };
    let by_node = super::outside::NODE.into_iter().zip(super::outside::CLIENT).map(|((own, _), client)| {
        let end = |text: &str, port: u16| {
            let address = text.parse::<std::net::IpAddr>().expect("an address");
            End { address: address.into(), port: L4Port::from(port) }
        };
        FlowKey::of(BRIDGE, 17, end(own, 8053), end(client, 5060))
    });
    asked.into_iter().flat_map(flows).chain(by_node).collect()
}

/// One flow is the kernel's: TCP between delta's port 80 and alpha's port 40000 (0x9c40), over IPv4.
pub fn kernel_flows() -> Vec<FlowKey> {
    let end = |name: &str, port: u16| {
        let place = PLACES.iter().find(|place| place.name == name).expect("a place");
        End { address: place.addresses()[0].into(), port: L4Port::from(port) }
    };
    vec![FlowKey::of(BRIDGE, 6, end("alpha", 40_000), end("delta", 80))]
}

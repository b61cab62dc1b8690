//! What others' rules have let through between lex and rex, and between ward and a host beyond an uplink, over both families.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use shunt_dataplane::abi::{
    ACCEPTED_LIBERAL, AcceptedFlow, CHECKED_SEGMENTS, End, FlowKey, HEEDING_EACH_TCP, Heeding,
};
use shunt_dataplane::wire::address::L4Port;

use super::world::{self, BRIDGE, FAR};
use super::{carried_out, tracked, uplinks};

/// Rules of the fifth generation, and a lease of a second.
pub const HEEDING: Heeding = Heeding { lease: 1_000_000_000, generation: 5, flags: HEEDING_EACH_TCP };

const TCP: u8 = 6;
const UDP: u8 = 17;

/// Longer ago than a lease, in nanoseconds.
pub(super) const LONG_AGO: u64 = 1_500_000_000;

/// From this port of lex on, connection tracking checks segments.
const CHECKED: u16 = 7006;

/// A host beyond the uplink.
const BEYOND: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0x77))];

/// By lex's port: whether lex's packets were seen lately, rex's, and the generation. Rex's port is 80.
const FLOWS: [(u16, Option<bool>, Option<bool>, u32); 9] = [
    // Both lately.
    (7001, Some(true), Some(true), 5),
    // Rex's too long ago.
    (7002, Some(true), Some(false), 5),
    // Rex has not answered.
    (7003, Some(true), None, 5),
    // By earlier rules.
    (7004, Some(true), Some(true), 4),
    // Lex's too long ago.
    (7005, Some(false), Some(true), 5),
    // As 7001, 7003, 7005 and 7004, and connection tracking still checks its segments: of the first a few, of the third as many as it takes to ask.
    (CHECKED, Some(true), Some(true), 5),
    (7007, Some(true), None, 5),
    (7008, Some(false), Some(true), 5),
    (7009, Some(true), Some(true), 4),
];

/// Who talks to whom: each end's addresses and port on the bridge.
struct Pair {
    bridge: u32,
    ends: [([IpAddr; 2], u32); 2],
}

impl Pair {
    fn new(bridge: u32, from: &str, (to, port): ([IpAddr; 2], u32)) -> Self {
        let place = world::places().find(|place| place.name == from).expect("a place");
        Self { bridge, ends: [(place.addresses(), place.ifindex), (to, port)] }
    }

    /// Their flows over both families, from the first's port to the other's port 80, with what was seen of each and the ports of both, lower end first.
    fn flows(
        &self,
        protocol: u8,
        port: u16,
        seen: [u64; 2],
    ) -> impl Iterator<Item = (FlowKey, [u64; 2], [u32; 2])> {
        let [(from, here), (to, there)] = self.ends;
        from.into_iter().zip(to).map(move |(from, to)| {
            let end = |address: IpAddr, port: u16| End { address: address.into(), port: L4Port::from(port) };
            let key = FlowKey::of(self.bridge, protocol, end(from, port), end(to, 80));
            let [one, other] = seen;
            if key.low.is(from.into()) {
                (key, seen, [here, there])
            } else {
                (key, [other, one], [there, here])
            }
        })
    }
}

/// Each of TCP and of UDP. No clock of a test gets past the lease of what was seen lately.
pub fn flows(now: u64) -> Vec<(FlowKey, AcceptedFlow)> {
    let rex = world::places().find(|place| place.name == "rex").expect("a place");
    let lex = Pair::new(BRIDGE, "lex", (rex.addresses(), rex.ifindex));
    let ward = Pair::new(uplinks::BRIDGE, "ward", (BEYOND, uplinks::NICS[0]));
    let of_lex = FLOWS.map(|flow| (&lex, flow));
    let of_ward = [(&ward, FLOWS[0])];
    let mut flows = Vec::new();
    for protocol in [TCP, UDP] {
        for (pair, (port, one, other, generation)) in of_lex.into_iter().chain(of_ward) {
            let seen = [one, other].map(|lately| match lately {
                None => 0,
                Some(true) => FAR,
                Some(false) => now.saturating_sub(LONG_AGO).max(1),
            });
            let flags = if port < CHECKED { ACCEPTED_LIBERAL } else { 0 };
            let checked = match port {
                CHECKED => CHECKED_SEGMENTS - 1,
                7008 => CHECKED_SEGMENTS,
                _ => 0,
            };
            flows.extend(
                pair.flows(protocol, port, seen)
                    .map(|(key, seen, ends)| (key, AcceptedFlow { seen, ends, generation, flags, checked })),
            );
        }
    }
    flows.extend(tracked::accepted(now));
    let stable = uplinks::PLACES.iter().find(|place| place.name == "stable").expect("a place");
    flows.extend(carried_out::accepted(now, stable));
    flows
}

//! What others' rules have let through between lex and rex, over both families.

use std::net::IpAddr;

use shunt_dataplane::abi::{
    ACCEPTED_LIBERAL, AcceptedFlow, CHECKED_SEGMENTS, End, FlowKey, HEEDING_EACH_TCP, Heeding,
};
use shunt_dataplane::wire::address::L4Port;

use super::world::{self, BRIDGE};

/// Rules of the fifth generation, and a lease of a second.
pub const HEEDING: Heeding = Heeding { lease: 1_000_000_000, generation: 5, flags: HEEDING_EACH_TCP };

const TCP: u8 = 6;
const UDP: u8 = 17;

/// Longer ago than a lease, in nanoseconds.
const LONG_AGO: u64 = 1_500_000_000;

/// From this port of lex on, connection tracking checks segments.
const CHECKED: u16 = 7006;

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

/// Each of TCP and of UDP. No clock of a test gets past the lease of what was seen lately.
pub fn flows(now: u64) -> Vec<(FlowKey, AcceptedFlow)> {
    let place = |name: &str| world::places().find(|place| place.name == name).expect("a place").addresses();
    let mut flows = Vec::new();
    for (protocol, (port, lex, rex, generation)) in
        [TCP, UDP].into_iter().flat_map(|protocol| FLOWS.map(|flow| (protocol, flow)))
    {
        for (from, to) in place("lex").into_iter().zip(place("rex")) {
            let end = |address: IpAddr, port: u16| End { address: address.into(), port: L4Port::from(port) };
            let key = FlowKey::of(BRIDGE, protocol, end(from, port), end(to, 80));
            let seen = [lex, rex].map(|lately| match lately {
                None => 0,
                Some(true) => now + 1_000_000_000_000,
                Some(false) => now.saturating_sub(LONG_AGO).max(1),
            });
            let flags = if port < CHECKED { ACCEPTED_LIBERAL } else { 0 };
            let checked = match port {
                CHECKED => CHECKED_SEGMENTS - 1,
                7008 => CHECKED_SEGMENTS,
                _ => 0,
            };
            // Lex has the lower address.
            let ends = ["lex", "rex"].map(world::ifindex);
            flows.push((key, AcceptedFlow { seen, ends, generation, flags, checked }));
        }
    }
    flows
}

//! Connections of the client with tau, by a host port of which others' rules are asked, that the kernel has opened.

use shunt_dataplane::abi::share::Side;
use shunt_dataplane::abi::translation::{TRACKED, TRANSLATION_OPENER, Translation, TupleKey, opened_by};
use shunt_dataplane::abi::{AcceptedFlow, End, FlowKey, TRANSLATED_SEGMENTS};
use shunt_dataplane::nat::connection::Shown;
use shunt_dataplane::wire::address::{Address, L4Port};

use super::accepted::LONG_AGO;
use super::connections::LASTING;
use super::outside::{CLIENT, NODE, TCP, UDP, UPLINK, address, place};
use super::world::{BRIDGE, FAR};

/// The client's ports: while both leases last, once they are over, and to where the host port leads no more.
const PORTS: [u16; 3] = [40_010, 40_011, 40_012];

/// The same, of a connection whose answers have been noted as often as it takes to ask, but for one.
const ASKED: u16 = 40_013;

/// The same, of one by a host port that the programs open by now, which is left over.
pub(super) const LEFT: u16 = 40_014;

/// The same, of one that has not been answered.
const UNANSWERED: u16 = 123;

const HOST_PORT: u16 = 8066;
const INNER_PORT: u16 = 66;

/// The host port that the programs open, and where it leads.
const PLAIN: [u16; 2] = [8080, 80];

/// Connections of the client with tau that the kernel has opened.
pub(super) fn connections(now: u64) -> Vec<(TupleKey, Translation)> {
    let of_each =
        PORTS.into_iter().flat_map(|port| [(TCP, port, 0), (UDP, port, 0), (TCP, port, 1), (UDP, port, 1)]);
    let of_each = of_each.chain([(TCP, LEFT, 0), (TCP, LEFT, 1)]);
    let tau = place("tau");
    let of_each = of_each.map(|(protocol, port, family)| {
        let request = TupleKey {
            domain: 0,
            source_port: L4Port::from(port),
            destination_port: L4Port::from(if port == LEFT { PLAIN[0] } else { HOST_PORT }),
            source: address(CLIENT[family]),
            destination: address(NODE[family].0),
            protocol,
            pad: [0; 3],
        };
        let inner = if port == LEFT { PLAIN[1] } else { INNER_PORT + u16::from(port == PORTS[2]) };
        let destination = tau.addresses()[family].into();
        let becomes = TupleKey { domain: BRIDGE, destination, destination_port: inner.into(), ..request };
        let side = if protocol == TCP { Side::TcpClient } else { Side::DatagramClient };
        let half = |becomes, flags| Translation {
            becomes,
            shown: Shown::SENT.0,
            touched: now,
            begun: now.saturating_sub(LASTING),
            holder: TRACKED,
            flags: flags | opened_by(side, tau.slot()),
            ..Translation::default()
        };
        let answer = half(request.reversed(0), 0);
        [(request, half(becomes, TRANSLATION_OPENER)), (becomes.reversed(BRIDGE), answer)]
    });
    of_each.flatten().collect()
}

/// Of tau's connections that the kernel has opened, each direction as it leaves: into tau from the uplink, and out of the uplink from the bridge. Of the first
/// lately, of the second too long ago; one more lately, which has been asked for by the next answer; and of the last what the client has sent.
pub(super) fn accepted(now: u64) -> Vec<(FlowKey, AcceptedFlow)> {
    let tau = place("tau");
    let [lately, lapsed, _] = PORTS;
    let mut flows = Vec::new();
    for (family, protocol) in [(0, TCP), (0, UDP), (1, TCP), (1, UDP)] {
        let end = |address: Address, port: u16| End { address, port: L4Port::from(port) };
        let [client, node] = [CLIENT[family], NODE[family].0].map(address);
        let long_ago = now.saturating_sub(LONG_AGO).max(1);
        for (port, seen) in [(lately, FAR), (lapsed, long_ago), (ASKED, FAR), (UNANSWERED, FAR)] {
            let client = end(client, port);
            let into =
                (BRIDGE, client, end(tau.addresses()[family].into(), INNER_PORT), [UPLINK, tau.ifindex]);
            let out = (0, end(node, HOST_PORT), client, [BRIDGE, UPLINK]);
            let ways = if port == UNANSWERED { vec![into] } else { vec![into, out] };
            let checked = if port == ASKED { TRANSLATED_SEGMENTS - 1 } else { 0 };
            flows.extend(ways.into_iter().map(|(domain, from, to, ports)| {
                let (key, flow) = noted((domain, protocol), [from, to], ports, seen);
                (key, AcceptedFlow { checked, ..flow })
            }));
        }
    }
    flows
}

/// What is noted of a direction by which something was `seen`.
pub(super) fn noted(
    (domain, protocol): (u32, u8),
    [from, to]: [End; 2],
    [here, there]: [u32; 2],
    seen: u64,
) -> (FlowKey, AcceptedFlow) {
    let key = FlowKey::of(domain, protocol, from, to);
    let is_low = key.low.is(from.address);
    let (seen, ends) = if is_low { ([seen, 0], [here, there]) } else { ([0, seen], [there, here]) };
    (key, AcceptedFlow { seen, ends, generation: 5, flags: 0, checked: 0 })
}

//! Connections of nu with the client, masqueraded by the kernel behind others' rules.

use shunt_dataplane::abi::share::Side;
use shunt_dataplane::abi::translation::{
    TRACKED_MASQUERADED, TRANSLATION_OPENER, Translation, TupleKey, opened_by,
};
use shunt_dataplane::abi::{AcceptedFlow, End, FlowKey, TRANSLATED_SEGMENTS};
use shunt_dataplane::nat::connection::Shown;
use shunt_dataplane::wire::address::{Address, L4Port};

use super::accepted::LONG_AGO;
use super::connections::LASTING;
use super::outside::{CLIENT, NODE, TCP, UDP, UPLINK, address, place};
use super::tracked::noted;
use super::uplinks::COURT;
use super::world::{BRIDGE, FAR, Place};

/// Nu's ports, and the node's in their place: while both leases last, once they are over, and where nothing was noted.
const PORTS: [(u16, u16); 3] = [(40_030, 20_030), (40_031, 20_031), (40_032, 20_032)];

/// The client's port.
const ASKED: u16 = 443;

/// The port of stable whose answers have been noted as often as it takes to ask, but for one.
const STABLES: u16 = 40_033;

/// Both entries of each.
pub(super) fn connections(now: u64) -> Vec<(TupleKey, Translation)> {
    let nu = place("nu");
    let mut flows = Vec::new();
    for (protocol, family) in [(TCP, 0), (UDP, 0), (TCP, 1), (UDP, 1)] {
        for (inner, outer) in PORTS {
            let request = TupleKey {
                domain: BRIDGE,
                source_port: inner.into(),
                destination_port: ASKED.into(),
                source: nu.addresses()[family].into(),
                destination: address(CLIENT[family]),
                protocol,
                pad: [0; 3],
            };
            let source = address(NODE[family].0);
            let becomes = TupleKey { domain: 0, source, source_port: outer.into(), ..request };
            let half = |becomes, flags| Translation {
                becomes,
                shown: Shown::SENT.0,
                touched: now,
                begun: now.saturating_sub(LASTING),
                holder: TRACKED_MASQUERADED,
                flags: flags | opened_by(Side::Own, nu.slot()),
                ..Translation::default()
            };
            flows.push((request, half(becomes, TRANSLATION_OPENER)));
            flows.push((becomes.reversed(0), half(request.reversed(BRIDGE), 0)));
        }
    }
    flows
}

/// Each direction as it leaves: into nu from the uplink, and out of the uplink from the bridge. Of the first lately, of the second too long ago.
pub(super) fn accepted(now: u64, stable: &Place) -> Vec<(FlowKey, AcceptedFlow)> {
    let nu = place("nu");
    let [lately, lapsed, _] = PORTS;
    let mut flows = Vec::new();
    for (family, protocol) in [(0, TCP), (0, UDP), (1, TCP), (1, UDP)] {
        let end = |address: Address, port: u16| End { address, port: L4Port::from(port) };
        let [client, node] = [CLIENT[family], NODE[family].0].map(address);
        let client = end(client, ASKED);
        let long_ago = now.saturating_sub(LONG_AGO).max(1);
        for ((inner, outer), seen) in [(lately, FAR), (lapsed, long_ago)] {
            let own = end(nu.addresses()[family].into(), inner);
            let ways = [
                (BRIDGE, client, own, [UPLINK, nu.ifindex]),
                (0, end(node, outer), client, [BRIDGE, UPLINK]),
            ];
            flows.extend(
                ways.map(|(domain, from, to, ports)| noted((domain, protocol), [from, to], ports, seen)),
            );
        }
        let own = end(stable.addresses()[family].into(), STABLES);
        let (key, flow) = noted((COURT, protocol), [client, own], [UPLINK, stable.ifindex], FAR);
        flows.push((key, AcceptedFlow { checked: TRANSLATED_SEGMENTS - 1, ..flow }));
    }
    flows
}

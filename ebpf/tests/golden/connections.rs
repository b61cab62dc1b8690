//! The translated connections that are there already, and their fragments.

use shunt_dataplane::abi::fragment::{FragmentKey, FragmentTranslation};
use shunt_dataplane::abi::share::Side;
use shunt_dataplane::abi::translation::{
    self, TRANSLATION_NEAR, TRANSLATION_OPENER, Translation, TupleKey, opened_by,
};
use shunt_dataplane::nat::connection::{Shown, is_assured};
use shunt_dataplane::wire::address::{Address, L4Port};

use super::outside::{CLIENT, GATEWAY, NODE, SCTP, TCP, UDP, address, place};
use super::world::BRIDGE;
use super::{carried_out, tracked};

type Entry = (TupleKey, Translation);

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

/// The same, of connections that the container has not answered.
const ASKED: u16 = 40_006;

/// Alpha's, in the name of which somebody else has opened a connection.
const FORGED: u16 = 43_002;

/// The same, where the halves are of two connections.
const MIXED: u16 = 40_003;

/// The entries of those that are assured.
pub fn assured(now: u64) -> Vec<Entry> {
    let all = all(now);
    all.iter().filter(|entry| is_kept(entry, &all, now)).copied().collect()
}

/// The others. Those from the port [`GIVEN`] are left by programs that assured none, and those from [`tracked::LEFT`] by the kernel.
pub fn flows(now: u64) -> Vec<Entry> {
    let all = all(now);
    all.iter().filter(|entry| !is_kept(entry, &all, now)).copied().collect()
}

fn is_kept((key, flow): &Entry, all: &[Entry], now: u64) -> bool {
    let given = [key, &flow.becomes].iter().any(|key| {
        let ports = [key.source_port, key.destination_port];
        [GIVEN, tracked::LEFT].into_iter().any(|port| ports.contains(&port.into()))
    });
    let reverse = flow.becomes.reversed(flow.becomes.domain);
    let other = all.iter().find(|(key, _)| *key == reverse);
    !given && other.is_some_and(|(_, other)| flow.belongs_to(key, other) && is_assured(flow, other, now))
}

/// How long ago those of SCTP have begun, in nanoseconds: long enough to be assured.
pub(super) const LASTING: u64 = 3_000_000_000;

/// Both entries of each connection from the client to tau, and to alpha by 8061.
fn all(now: u64) -> Vec<(TupleKey, Translation)> {
    let mut flows = Vec::new();
    let established = Shown::SENT;
    let reset = Shown(Shown::SENT.0 | Shown::RESET.0);
    for (family, [node, client]) in [0, 1].map(|family| (family, [NODE[family].0, CLIENT[family]])) {
        for (protocol, outer, inner, client_port, shown) in [
            (TCP, 8080, 80, OLD, established),
            (UDP, 8053, 53, OLD, Shown::SENT),
            (UDP, 8053, 53, ASKED, Shown::SENT),
            (SCTP, 8132, 90, OLD, Shown::SENT),
            (TCP, 8080, 80, ENDED, reset),
            (TCP, 8080, 80, HALF, established),
            (TCP, 8080, 80, MIXED, established),
            (TCP, 8079, 80, TAKEN, established),
            (TCP, 8080, 80, GIVEN, established),
            (TCP, 8061, 61, OLD, established),
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
            let container = place(if outer == 8061 { "alpha" } else { "tau" });
            let becomes = TupleKey {
                domain: BRIDGE,
                source_port: (client_port + u16::from(client_port == GIVEN)).into(),
                destination_port: L4Port::from(inner),
                destination: container.addresses()[family].into(),
                ..request
            };
            let slot = container.slot();
            let side = if protocol == TCP { Side::TcpClient } else { Side::DatagramClient };
            let half = |becomes, flags| Translation {
                becomes,
                shown: if client_port == ASKED && flags == 0 { 0 } else { shown.0 },
                touched: now,
                begun: match (client_port, protocol) {
                    (MIXED, _) => now - u64::from(flags),
                    (_, SCTP) => now.saturating_sub(LASTING),
                    _ => now,
                },
                packets: 0,
                bytes: 0,
                holder: 0,
                flags: flags | opened_by(side, slot),
                acknowledged: 0,
                end: 0,
            };
            if client_port != HALF {
                flows.push((request, half(becomes, TRANSLATION_OPENER)));
            }
            flows.push((becomes.reversed(BRIDGE), half(request.reversed(0), 0)));
        }
    }
    flows.extend(neighbors(now));
    flows.extend(kept(now));
    flows.extend(masqueraded(now));
    flows.extend(own(now));
    flows.extend(tracked::connections(now));
    flows.extend(carried_out::connections(now));
    flows
}

/// Connections of alpha's 43000 with stau's 63, by the node's 8063, where stau sees alpha; and by its 8064 with 64, where it sees its
/// gateway. From 43002 one that came from outside in alpha's name.
fn kept(now: u64) -> Vec<(TupleKey, Translation)> {
    let ways = [(TCP, 8063, 43_000), (UDP, 8063, 43_000), (UDP, 8064, 43_000), (TCP, 8063, FORGED)];
    let of_each = ways.into_iter().flat_map(|way| [(way, 0), (way, 1)]);
    let of_each = of_each.map(|((protocol, outer, port), family)| {
        let domain = if port == FORGED { 0 } else { BRIDGE };
        let request = TupleKey {
            domain,
            source_port: L4Port::from(port),
            destination_port: L4Port::from(outer),
            source: place("alpha").addresses()[family].into(),
            destination: address(NODE[family].0),
            protocol,
            pad: [0; 3],
        };
        let becomes = TupleKey {
            domain: BRIDGE,
            source: if outer == 8064 { address(GATEWAY[family]) } else { request.source },
            destination_port: L4Port::from(outer - 8000),
            destination: place("stau").addresses()[family].into(),
            ..request
        };
        let half = |becomes, flags| Translation {
            becomes,
            shown: Shown::SENT.0,
            touched: now,
            begun: now,
            packets: 0,
            bytes: 0,
            holder: 0,
            flags: if port == FORGED { flags } else { flags | TRANSLATION_NEAR },
            acknowledged: 0,
            end: 0,
        };
        let answer = half(request.reversed(domain), 0);
        [(request, half(becomes, TRANSLATION_OPENER)), (becomes.reversed(BRIDGE), answer)]
    });
    of_each.flatten().collect()
}

/// Connections of alpha and beta with tau, by the node: the node's address with alpha's 42000 as 42001, and with beta's 41000;
/// all of them by each of the protocols.
fn neighbors(now: u64) -> Vec<(TupleKey, Translation)> {
    let mut flows = Vec::new();
    let ways = [(TCP, 8080, 80, Shown::SENT), (UDP, 8053, 53, Shown::SENT), (SCTP, 8132, 90, Shown::SENT)];
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
                acknowledged: 0,
                end: 0,
            };
            flows.push((request, half(becomes, TRANSLATION_OPENER)));
            flows.push((becomes.reversed(BRIDGE), half(request.reversed(BRIDGE), 0)));
        }
    }
    flows
}

/// What first fragments have become: datagram 0x7001 from the client to tau and from tau to the client, 0x7003 to zeta, and 0x7004
/// from alpha, by the node, to chi, and 0x7006 from stau to alpha; of an echo and its reply 0x7005 from nu to the client and back. None is of long ago: a machine that has just been started has no such time.
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
            (
                0x7006,
                UDP,
                (BRIDGE, container("stau"), container("alpha")),
                (BRIDGE, node, container("alpha")),
            ),
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

/// Masqueraded connections of nu with the client: TCP 443 and UDP 53 from 40000, by the node's 20000; TCP 443 from 40001, over,
/// by 20001; from 40002, whoever had nu's address before, by 20002; from 40003, by an address that the node had, and 20003.
/// Another container's from 6000, by 5000. Echoes with the client of the first kind, the fourth and the last, without the 443.
fn masqueraded(now: u64) -> Vec<(TupleKey, Translation)> {
    let mut flows = Vec::new();
    let established = Shown::SENT;
    let formerly = ["192.0.2.77", "2001:db8::77"];
    for family in [0, 1] {
        let nu = place("nu");
        for (protocol, port, from, given, shown, holder) in [
            (TCP, 443, OLD, 20_000, established, nu.ifindex),
            (UDP, 53, OLD, 20_000, Shown::SENT, nu.ifindex),
            (TCP, 443, ENDED, 20_001, Shown(Shown::SENT.0 | Shown::RESET.0), nu.ifindex),
            (TCP, 443, HALF, 20_002, established, 1999),
            (TCP, 443, MIXED, 20_003, established, nu.ifindex),
            (TCP, 443, 6000, 5000, established, place("omicron").ifindex),
            (ICMP[family], 0, OLD, 20_000, Shown::SENT, nu.ifindex),
            (ICMP[family], 0, HALF, 20_002, Shown::SENT, 1999),
            (ICMP[family], 0, 6000, 5000, Shown::SENT, place("omicron").ifindex),
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
                acknowledged: 0,
                end: 0,
            };
            flows.push((request, half(becomes, TRANSLATION_OPENER)));
            flows.push((becomes.reversed(0), half(request.reversed(BRIDGE), 0)));
        }
    }
    flows
}

/// Connections of the node's own 30000 with the client, which go by 30001 outside: TCP with 443, UDP with 53.
fn own(now: u64) -> Vec<Entry> {
    let ways = [(TCP, 443), (UDP, 53)].into_iter().flat_map(|way| [(way, 0), (way, 1)]);
    let of_each = ways.map(|((protocol, port), family)| {
        let sent = TupleKey {
            domain: translation::NODE,
            source_port: L4Port::from(30_000),
            destination_port: L4Port::from(port),
            source: address(NODE[family].0),
            destination: address(CLIENT[family]),
            protocol,
            pad: [0; 3],
        };
        let becomes = TupleKey { domain: 0, source_port: L4Port::from(30_001), ..sent };
        let half = |becomes, flags| Translation {
            becomes,
            shown: Shown::SENT.0,
            touched: now,
            begun: now,
            packets: 0,
            bytes: 0,
            holder: translation::NODE,
            flags,
            acknowledged: 0,
            end: 0,
        };
        let answer = half(sent.reversed(sent.domain), 0);
        [(sent, half(becomes, TRANSLATION_OPENER)), (becomes.reversed(0), answer)]
    });
    of_each.flatten().collect()
}

//! What becomes of a connection that the kernel has opened, as the programs' entries say it.

use shunt_dataplane::abi::translation::{
    Mapping, OUTSIDE, Shown, TRACKED, TRACKED_MASQUERADED, TRANSLATION_OPENER, Translation, TupleKey,
};
use shunt_netlink::conntrack::TrackedConnection;

use crate::datapath::encode::tuple_key;

/// How long ago a connection began that connection tracking calls assured, at least, in nanoseconds (`nf_conntrack_udp_packet`,
/// net/netfilter/nf_conntrack_proto_udp.c).
const LASTED: u64 = 2_000_000_000;

/// The entries of both directions of a connection, that of the packets from outside first where a container has begun it, and that of the answers where a client
/// has: by then a request may be answered.
pub(super) type Pair = [(TupleKey, Translation); 2];

/// The entries of a host port's connection. None of one that goes elsewhere, that has just begun or begins to end, or that the container sees by another name
/// than its client's own: of several clients one may have that name after the other.
pub(super) fn of_host_port(mapping: &Mapping, tracked: &TrackedConnection, now: u64) -> Option<Pair> {
    let TrackedConnection { original, reply, .. } = tracked;
    let becomes = tuple_key(mapping.bridge, reply).reversed(mapping.bridge);
    let is_its_own = mapping.leads_as(&becomes) && reply.destination == original.source;
    (lasts(tracked) && is_its_own).then(|| both(tuple_key(OUTSIDE, original), becomes, TRACKED, now))
}

/// The entries of a connection that a container on this bridge has begun. None of one that the kernel does not masquerade, that it leads elsewhere as well (a
/// Service's), or that has just begun or begins to end.
pub(super) fn masqueraded(bridge: u32, tracked: &TrackedConnection, now: u64) -> Option<Pair> {
    let TrackedConnection { original, reply, .. } = tracked;
    let becomes = tuple_key(OUTSIDE, reply).reversed(OUTSIDE);
    let is_so = reply.destination.ip() != original.source.ip() && reply.source == original.destination;
    (lasts(tracked) && is_so).then(|| both(tuple_key(bridge, original), becomes, TRACKED_MASQUERADED, now))
}

/// Whether both sides have sent, and none has begun to end it.
const fn lasts(tracked: &TrackedConnection) -> bool {
    tracked.is_assured && tracked.is_established
}

fn both(request: TupleKey, becomes: TupleKey, holder: u32, now: u64) -> Pair {
    let half = |becomes, flags| Translation {
        becomes,
        shown: Shown::SENT.0,
        touched: now,
        begun: now.saturating_sub(LASTED),
        holder,
        flags,
        ..Translation::default()
    };
    let answer = half(request.reversed(request.domain), 0);
    [(becomes.reversed(becomes.domain), answer), (request, half(becomes, TRANSLATION_OPENER))]
}

#[cfg(test)]
mod tests {
    use shunt_netlink::conntrack::Tuple;

    use super::*;

    const NOW: u64 = 9 * LASTED;

    fn mapping() -> Mapping {
        let container: std::net::IpAddr = "10.0.0.2".parse().unwrap();
        Mapping { v4: container.into(), bridge: 7, port: 80.into(), ..Mapping::default() }
    }

    fn said(source: &str, destination: &str) -> Tuple {
        Tuple { protocol: 6, source: source.parse().unwrap(), destination: destination.parse().unwrap() }
    }

    fn tracked() -> TrackedConnection {
        TrackedConnection {
            original: said("192.0.2.9:4000", "192.0.2.1:8080"),
            reply: said("10.0.0.2:80", "192.0.2.9:4000"),
            is_assured: true,
            is_established: true,
            timeout: 0,
        }
    }

    /// One that the container has begun.
    fn begun_inside() -> TrackedConnection {
        let (original, reply) =
            (said("10.0.0.2:5000", "192.0.2.9:53"), said("192.0.2.9:53", "192.0.2.1:1024"));
        TrackedConnection { original, reply, ..tracked() }
    }

    fn assert_both([(back, answer), (request, there)]: Pair, domains: [u32; 2]) {
        assert_eq!([back.domain, request.domain], domains);
        assert_eq!(there.becomes.reversed(there.becomes.domain), back);
        assert_eq!(answer.becomes.reversed(answer.becomes.domain), request);
        assert!(there.belongs_to(&request, &answer) && answer.belongs_to(&back, &there));
        assert!(shunt_dataplane::nat::connection::is_assured(&there, &answer, NOW));
    }

    #[test]
    fn either_direction_finds_the_other_and_both_are_assured() {
        assert_both(of_host_port(&mapping(), &tracked(), NOW).unwrap(), [7, OUTSIDE]);
        assert_both(masqueraded(7, &begun_inside(), NOW).unwrap(), [OUTSIDE, 7]);
    }

    #[test]
    fn what_goes_elsewhere_or_began_elsewhere_stays_with_the_kernel() {
        let young = TrackedConnection { is_assured: false, ..tracked() };
        let closing = TrackedConnection { is_established: false, ..tracked() };
        let elsewhere = TrackedConnection { reply: said("10.0.0.3:80", "192.0.2.9:4000"), ..tracked() };
        let other_port = TrackedConnection { reply: said("10.0.0.2:81", "192.0.2.9:4000"), ..tracked() };
        let hidden = TrackedConnection { reply: said("10.0.0.2:80", "10.0.0.1:4000"), ..tracked() };
        let renumbered = TrackedConnection { reply: said("10.0.0.2:80", "192.0.2.9:4001"), ..tracked() };
        for stays in [young, closing, elsewhere, other_port, hidden, renumbered, begun_inside()] {
            assert!(of_host_port(&mapping(), &stays, NOW).is_none(), "{stays:?}");
        }
    }

    #[test]
    fn what_is_not_masqueraded_or_led_elsewhere_stays_with_the_kernel() {
        let young = TrackedConnection { is_assured: false, ..begun_inside() };
        let closing = TrackedConnection { is_established: false, ..begun_inside() };
        let routed = TrackedConnection { reply: said("192.0.2.9:53", "10.0.0.2:5000"), ..begun_inside() };
        let service = TrackedConnection { reply: said("192.0.2.8:53", "192.0.2.1:1024"), ..begun_inside() };
        for stays in [young, closing, routed, service] {
            assert!(masqueraded(7, &stays, NOW).is_none(), "{stays:?}");
        }
    }
}

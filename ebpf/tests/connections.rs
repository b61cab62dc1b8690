//! What a translated connection comes to, and when its tuple is free again.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use proptest::prelude::*;
use shunt_dataplane::abi::translation::TupleKey;
use shunt_dataplane::nat::connection::{Direction, Fate, Phase, Shown, fate, lifetime, opens, phase};
use shunt_dataplane::wire::Protocol;
use shunt_dataplane::wire::address::{Address, L4Port};

const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;
const SECOND: u64 = 1_000_000_000;
const PHASES: [Phase; 5] = [Phase::Opening, Phase::Established, Phase::Closing, Phase::Closed, Phase::Reset];
const PROTOCOLS: [Protocol; 5] =
    [Protocol::TCP, Protocol::UDP, Protocol::SCTP, Protocol::ICMP, Protocol::ICMPV6];

#[derive(Clone, Copy, Debug, PartialEq)]
enum Side {
    Opener,
    Answerer,
}
use Side::{Answerer, Opener};

/// What both directions have shown after these segments.
fn after(segments: &[(Side, u8)]) -> (Shown, Shown) {
    segments.iter().fold((Shown::NOTHING, Shown::NOTHING), |(opener, answerer), (side, flags)| match side {
        Opener => (opener.segment(*flags), answerer),
        Answerer => (opener, answerer.segment(*flags)),
    })
}

fn phase_after(segments: &[(Side, u8)]) -> Phase {
    let (opener, answerer) = after(segments);
    phase(opener, answerer)
}

const HANDSHAKE: [(Side, u8); 3] = [(Opener, SYN), (Answerer, SYN | ACK), (Opener, ACK)];

#[test]
fn a_connection_goes_through_its_phases() {
    let whole = [&HANDSHAKE[..], &[(Opener, FIN | ACK), (Answerer, ACK), (Answerer, FIN | ACK)]].concat();
    let expected =
        [Phase::Opening, Phase::Opening, Phase::Established, Phase::Closing, Phase::Closing, Phase::Closed];
    for (n, phase) in expected.into_iter().enumerate() {
        assert_eq!(phase_after(&whole[..=n]), phase, "after {:?}", whole[n]);
    }
}

#[test]
fn a_refused_connection_is_reset() {
    assert_eq!(phase_after(&[(Opener, SYN), (Answerer, RST | ACK)]), Phase::Reset);
}

#[test]
fn a_reset_is_believed_until_its_sender_sends_on() {
    let forged = [&HANDSHAKE[..], &[(Answerer, RST)]].concat();
    assert_eq!(phase_after(&forged), Phase::Reset);
    assert_eq!(phase_after(&[&forged[..], &[(Opener, ACK)]].concat()), Phase::Reset, "the other side's word");
    assert_eq!(phase_after(&[&forged[..], &[(Answerer, ACK)]].concat()), Phase::Established);
}

#[test]
fn no_lifetime_is_shorter_than_the_standards_ask() {
    assert!(lifetime(Protocol::TCP, Phase::Established) >= (2 * 60 + 4) * 60 * SECOND, "RFC 5382 REQ-5");
    for phase in [Phase::Opening, Phase::Closing] {
        assert!(lifetime(Protocol::TCP, phase) >= 4 * 60 * SECOND, "RFC 5382 REQ-5");
    }
    assert!(lifetime(Protocol::TCP, Phase::Reset) >= 4 * 60 * SECOND, "RFC 7857 section 2.2");
    for phase in PHASES {
        assert!(lifetime(Protocol::UDP, phase) >= 2 * 60 * SECOND, "RFC 4787 REQ-5");
        assert!(lifetime(Protocol::ICMP, phase) >= 60 * SECOND, "RFC 5508 REQ-2");
        assert!(lifetime(Protocol::SCTP, phase) >= 60 * SECOND, "two heartbeats");
    }
}

#[test]
fn only_a_bare_syn_asks_for_a_connection() {
    let asking: Vec<u8> = (0..32).filter(|flags| opens(*flags)).collect();
    // PSH is no business of ours.
    assert_eq!(asking, [SYN, SYN | 8]);
}

#[test]
fn a_closed_tuple_is_used_again_at_once_by_a_syn_only() {
    let closed = Direction { shown: Shown::NOTHING.segment(FIN | ACK), touched: 5 * SECOND };
    let now = 6 * SECOND;
    assert_eq!(fate(Protocol::TCP, closed, closed, true, now), Fate::Renews);
    assert_eq!(fate(Protocol::TCP, closed, closed, false, now), Fate::Continues);
}

fn any_segments() -> impl Strategy<Value = Vec<(Side, u8)>> {
    prop::collection::vec((prop_oneof![Just(Opener), Just(Answerer)], 0u8..64), 0..24)
}

fn any_direction() -> impl Strategy<Value = Direction> {
    (0u32..8, 0..400 * 60 * SECOND).prop_map(|(shown, touched)| Direction { shown: Shown(shown), touched })
}

fn any_protocol() -> impl Strategy<Value = Protocol> {
    (0..PROTOCOLS.len()).prop_map(|n| PROTOCOLS[n])
}

fn any_address() -> impl Strategy<Value = Address> {
    any::<[u16; 8]>().prop_map(Address::from_v6)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4096, ..ProptestConfig::default() })]

    #[test]
    fn how_the_two_directions_interleave_changes_nothing(segments in any_segments()) {
        let of = |wanted: Side| segments.iter().copied().filter(move |(side, _)| *side == wanted);
        let sorted: Vec<_> = of(Opener).chain(of(Answerer)).collect();
        prop_assert_eq!(after(&segments), after(&sorted));
    }

    #[test]
    fn an_established_connection_stays_so_without_fin_and_rst(segments in any_segments()) {
        let harmless = segments.into_iter().map(|(side, flags)| (side, flags & !(FIN | RST)));
        let all: Vec<_> = HANDSHAKE.into_iter().chain(harmless).collect();
        prop_assert_eq!(phase_after(&all), Phase::Established);
    }

    #[test]
    fn nobody_establishes_a_connection_alone(segments in any_segments(), opener in any::<bool>()) {
        let side = if opener { Opener } else { Answerer };
        let alone: Vec<_> = segments.into_iter().map(|(_, flags)| (side, flags)).collect();
        prop_assert!(matches!(phase_after(&alone), Phase::Opening | Phase::Closing | Phase::Reset));
    }

    #[test]
    fn a_tuple_that_has_expired_never_meets_old_state(
        protocol in any_protocol(), opener in any_direction(), answerer in any_direction(), asks in any::<bool>(),
        late in 0..SECOND * 1_000,
    ) {
        let life = lifetime(protocol, phase(opener.shown, answerer.shown));
        let now = opener.touched.max(answerer.touched) + life + late;
        let fate = fate(protocol, opener, answerer, asks, now);
        prop_assert_eq!(fate, if asks { Fate::Renews } else { Fate::Strays });
    }

    #[test]
    fn a_live_connection_continues_unless_it_is_done_and_asked_for_again(
        protocol in any_protocol(), opener in any_direction(), answerer in any_direction(), asks in any::<bool>(),
        early in 1..SECOND * 60,
    ) {
        let phase = phase(opener.shown, answerer.shown);
        let is_done = matches!(phase, Phase::Closed | Phase::Reset);
        let now = opener.touched.max(answerer.touched) + lifetime(protocol, phase) - early;
        let expected = if is_done && asks { Fate::Renews } else { Fate::Continues };
        prop_assert_eq!(fate(protocol, opener, answerer, asks, now), expected);
    }

    #[test]
    fn a_clock_that_goes_back_between_cpus_ends_nothing(
        protocol in any_protocol(), opener in any_direction(), answerer in any_direction(), now in 0..SECOND,
    ) {
        let now = opener.touched.min(answerer.touched).min(now);
        prop_assert_eq!(fate(protocol, opener, answerer, false, now), Fate::Continues);
    }

    #[test]
    fn a_tuple_reversed_twice_is_itself(
        source in any_address(), destination in any_address(), ports in any::<[u16; 2]>(), domain in any::<u32>(),
    ) {
        let [source_port, destination_port] = ports.map(L4Port::from);
        let key = TupleKey { domain, source_port, destination_port, source, destination, protocol: 6, pad: [0; 3] };
        prop_assert_eq!(key.reversed(7).reversed(domain), key);
        prop_assert_eq!(key.reversed(7).source, key.destination);
        prop_assert_eq!(key.reversed(7).source_port, key.destination_port);
    }
}

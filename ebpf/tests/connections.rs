//! What a translated connection comes to, and when its tuple is free again.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use proptest::prelude::*;
use shunt_dataplane::abi::translation::{Translation, TupleKey};
use shunt_dataplane::nat::connection::{
    Direction, Fate, Phase, Shown, fate, is_assured, lifetime, opens, phase,
};
use shunt_dataplane::wire::address::{Address, L4Port};
use shunt_dataplane::wire::{Protocol, Step};

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

/// A segment: who sends it, its flags, its sequence number (behind it, of a FIN), and its acknowledgment number.
type Sent = (Side, u8, u32, u32);

/// Both directions after these segments, one a second.
fn after(segments: &[Sent]) -> (Translation, Translation) {
    let mut sides = (Translation::default(), Translation::default());
    for (n, (side, flags, number, acknowledges)) in segments.iter().copied().enumerate() {
        let (step, now) = (Some(Step { flags, number, acknowledges }), (n as u64 + 1) * SECOND);
        match side {
            Opener => sides.0.advance(&sides.1, step, now),
            Answerer => sides.1.advance(&sides.0, step, now),
        }
    }
    sides
}

fn phase_after(segments: &[Sent]) -> Phase {
    let (opener, answerer) = after(segments);
    phase(Shown(opener.shown), Shown(answerer.shown))
}

/// The opener begins at 1000, the answerer just before the numbers begin again.
const HANDSHAKE: [Sent; 3] =
    [(Opener, SYN, 0, 0), (Answerer, SYN | ACK, 0, 1_001), (Opener, ACK, 0, u32::MAX)];

/// What each of them sends to end it: 100 bytes and a FIN of the opener, 10 and a FIN of the answerer.
const FAREWELL: [Sent; 4] = [
    (Opener, FIN | ACK, 1_102, u32::MAX),
    (Answerer, ACK, 0, 1_102),
    (Answerer, FIN | ACK, 10, 1_102),
    (Opener, ACK, 0, 10),
];

#[test]
fn a_connection_goes_through_its_phases() {
    let whole = [&HANDSHAKE[..], &FAREWELL].concat();
    let expected = [
        Phase::Opening,
        Phase::Opening,
        Phase::Established,
        Phase::Established,
        Phase::Closing,
        Phase::Closing,
        Phase::Closed,
    ];
    for (n, phase) in expected.into_iter().enumerate() {
        assert_eq!(phase_after(&whole[..=n]), phase, "after {:?}", whole[n]);
    }
}

#[test]
fn both_may_finish_at_once() {
    let both = [(Opener, FIN | ACK, 1_002, u32::MAX), (Answerer, FIN | ACK, 0, 1_001)];
    let agreed = [(Opener, ACK, 0, 0), (Answerer, ACK, 0, 1_002)];
    assert_eq!(phase_after(&[&HANDSHAKE[..], &both].concat()), Phase::Established);
    assert_eq!(phase_after(&[&HANDSHAKE[..], &both, &agreed].concat()), Phase::Closed);
}

#[test]
fn a_forged_fin_changes_nothing_and_the_true_one_still_counts() {
    for forger in [Opener, Answerer] {
        // Far ahead; and just what has been acknowledged already.
        let heard = if forger == Opener { 1_001 } else { u32::MAX };
        let forged = [(forger, FIN | ACK, 1 << 30, 88), (forger, FIN | ACK, heard, 88)];
        let goes_on = [(Answerer, ACK, 0, 1_051), (Opener, ACK, 0, 5)];
        let talks = [&HANDSHAKE[..], &forged, &goes_on].concat();
        assert_eq!(phase_after(&talks), Phase::Established);
        let ends = [&talks[..], &FAREWELL].concat();
        assert_eq!(phase_after(&ends), Phase::Closed);
        assert_eq!(phase_after(&[&ends[..], &forged].concat()), Phase::Closed, "it is over for good");
    }
}

#[test]
fn a_refused_connection_is_reset() {
    assert_eq!(phase_after(&[(Opener, SYN, 0, 0), (Answerer, RST | ACK, 0, 1_001)]), Phase::Reset);
}

#[test]
fn a_reset_that_fits_is_believed_until_its_sender_sends_on() {
    let reset = [&HANDSHAKE[..], &[(Answerer, RST, u32::MAX, 0)]].concat();
    assert_eq!(phase_after(&reset), Phase::Reset);
    let word = [(Opener, ACK, 0, u32::MAX)];
    assert_eq!(phase_after(&[&reset[..], &word].concat()), Phase::Reset, "the other side's word");
    let sends_on = [(Answerer, ACK, 0, 1_001)];
    assert_eq!(phase_after(&[&reset[..], &sends_on].concat()), Phase::Established);
}

#[test]
fn a_reset_may_be_ahead_of_what_is_acknowledged_but_not_behind_it() {
    for (number, expected) in [
        (u32::MAX, Phase::Reset),
        (100_000, Phase::Reset),
        ((16 << 20) - 2, Phase::Reset),
        ((16 << 20) - 1, Phase::Established),
        (u32::MAX - 1, Phase::Established),
        (1 << 30, Phase::Established),
        (1 << 31, Phase::Established),
    ] {
        let reset = [&HANDSHAKE[..], &[(Answerer, RST, number, 0)]].concat();
        assert_eq!(phase_after(&reset), expected, "{number}");
    }
}

#[test]
fn a_reset_that_does_not_fit_keeps_no_connection_alive() {
    let (_, before) = after(&HANDSHAKE);
    let (_, forged) = after(&[&HANDSHAKE[..], &[(Answerer, RST, 1 << 30, 0)]].concat());
    assert_eq!(forged, before);
}

#[test]
fn no_lifetime_is_shorter_than_the_standards_ask() {
    assert!(lifetime(Protocol::TCP, Phase::Established) >= (2 * 60 + 4) * 60 * SECOND, "RFC 5382 REQ-5");
    for phase in [Phase::Opening, Phase::Closing] {
        assert!(lifetime(Protocol::TCP, phase) >= 4 * 60 * SECOND, "RFC 5382 REQ-5");
    }
    assert!(lifetime(Protocol::TCP, Phase::Reset) >= 4 * 60 * SECOND, "RFC 7857 section 2.2");
    assert_eq!(lifetime(Protocol::UDP, Phase::Opening), 30 * SECOND, "as the kernel's: nobody has answered");
    assert!(lifetime(Protocol::UDP, Phase::Established) >= 2 * 60 * SECOND, "RFC 4787 REQ-5");
    for phase in PHASES {
        assert!(lifetime(Protocol::ICMP, phase) >= 60 * SECOND, "RFC 5508 REQ-2");
        assert!(lifetime(Protocol::SCTP, phase) >= 60 * SECOND, "two heartbeats");
    }
}

#[test]
fn a_connection_is_assured_between_its_handshake_and_its_end() {
    let is_assured_after = |segments: &[Sent]| {
        let (mut opener, mut answerer) = after(segments);
        for side in [&mut opener, &mut answerer] {
            side.becomes.protocol = Protocol::TCP.0;
        }
        let assured = is_assured(&opener, &answerer, 100 * SECOND);
        assert_eq!(assured, is_assured(&answerer, &opener, 100 * SECOND), "whoever looks");
        assured
    };
    assert!(!is_assured_after(&HANDSHAKE[..1]), "a SYN");
    assert!(!is_assured_after(&HANDSHAKE[..2]), "an answer that may be to a forged address");
    assert!(is_assured_after(&HANDSHAKE));
    let reset = [&HANDSHAKE[..], &[(Answerer, RST, u32::MAX, 0)]].concat();
    assert!(!is_assured_after(&reset));
    let sends_on = [&reset[..], &[(Answerer, ACK, 0, 1_001)]].concat();
    assert!(is_assured_after(&sends_on), "the reset was forged");
}

#[test]
fn a_question_and_its_answer_are_not_assured_and_a_conversation_is() {
    let half = |shown: Shown| Translation {
        becomes: TupleKey { protocol: Protocol::UDP.0, ..TupleKey::default() },
        shown: shown.0,
        begun: 10 * SECOND,
        ..Translation::default()
    };
    let (sent, silent) = (half(Shown::SENT), half(Shown::NOTHING));
    assert!(!is_assured(&sent, &sent, 12 * SECOND - 1));
    assert!(is_assured(&sent, &sent, 12 * SECOND));
    assert!(!is_assured(&sent, &silent, 1_000 * SECOND), "nobody has answered");
    assert!(sent.answers(Shown::NOTHING.0, &sent));
    assert!(!sent.answers(Shown::SENT.0, &sent), "once");
    assert!(!sent.answers(Shown::NOTHING.0, &silent));
}

#[test]
fn only_a_bare_syn_asks_for_a_connection() {
    let asking: Vec<u8> = (0..32).filter(|flags| opens(*flags)).collect();
    // PSH is no business of ours.
    assert_eq!(asking, [SYN, SYN | 8]);
}

#[test]
fn a_closed_tuple_is_used_again_at_once_by_a_syn_only() {
    let shown = Shown(Shown::SENT.0 | Shown::FINISHED.0 | Shown::AGREED.0);
    let closed = Direction { shown, touched: 5 * SECOND };
    let now = 6 * SECOND;
    assert_eq!(fate(Protocol::TCP, closed, closed, true, now), Fate::Renews);
    assert_eq!(fate(Protocol::TCP, closed, closed, false, now), Fate::Continues);
}

fn any_segments() -> impl Strategy<Value = Vec<Sent>> {
    let side = prop_oneof![Just(Opener), Just(Answerer)];
    prop::collection::vec((side, 0u8..64, any::<u32>(), any::<u32>()), 0..24)
}

fn any_direction() -> impl Strategy<Value = Direction> {
    (0u32..16, 0..400 * 60 * SECOND).prop_map(|(shown, touched)| Direction { shown: Shown(shown), touched })
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
    fn an_established_connection_stays_so_without_fin_and_rst(segments in any_segments()) {
        let harmless = segments.into_iter().map(|(side, flags, number, acknowledges)| {
            (side, flags & !(FIN | RST), number, acknowledges)
        });
        let all: Vec<_> = HANDSHAKE.into_iter().chain(harmless).collect();
        prop_assert_eq!(phase_after(&all), Phase::Established);
    }

    #[test]
    fn nobody_establishes_or_finishes_a_connection_alone(segments in any_segments(), opener in any::<bool>()) {
        let side = if opener { Opener } else { Answerer };
        let alone: Vec<_> =
            segments.into_iter().map(|(_, flags, number, acknowledges)| (side, flags, number, acknowledges)).collect();
        prop_assert!(matches!(phase_after(&alone), Phase::Opening | Phase::Reset));
    }

    #[test]
    fn nobody_finishes_for_the_other_side(segments in any_segments()) {
        // The opener never does; the answerer tries whatever it likes.
        let segments = segments.into_iter().map(|(side, flags, number, acknowledges)| {
            (side, flags & !if side == Opener { FIN | RST } else { RST }, number, acknowledges)
        });
        let all: Vec<_> = HANDSHAKE.into_iter().chain(segments).collect();
        prop_assert!(matches!(phase_after(&all), Phase::Established | Phase::Closing));
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

//! The state of a translated connection: how long it lives, and when its tuple may begin another one.
//!
//! Each direction has an entry of its own that only its packets write: what they have [`Shown`], and when the last one came.
//! The connection's [`Phase`] is computed from both, so two CPUs never write one word in turn. Of sequence numbers only those are
//! looked at that end a connection: a FIN counts when the other side has acknowledged it, a reset where it fits and until its
//! sender sends again (RFC 7857 section 2.2).

use crate::abi::translation::Translation;
pub use crate::abi::translation::{Direction, Shown};
use crate::wire::{Protocol, TCP_ACK, TCP_FIN, TCP_RST, TCP_SYN};

const SECOND: u64 = 1_000_000_000;

/// The phase of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// One side only has sent, or the handshake is not over.
    Opening,
    /// Both sides have sent.
    Established,
    /// One side has finished, and the other has acknowledged that.
    Closing,
    /// Both sides have finished, and acknowledged that.
    Closed,
    /// A side has reset it.
    Reset,
}

impl Phase {
    /// Every phase.
    pub const ALL: [Self; 5] = [Self::Opening, Self::Established, Self::Closing, Self::Closed, Self::Reset];

    /// Its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Opening => "opening",
            Self::Established => "established",
            Self::Closing => "closing",
            Self::Closed => "closed",
            Self::Reset => "reset",
        }
    }
}

/// What a packet means for the connection of its tuple.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It belongs to the connection.
    Continues,
    /// It begins a new connection; the old one is over.
    Renews,
    /// The connection is over and it begins none: it must not meet the old state.
    Strays,
}

/// The phase, by what the opener and the other side have shown.
#[inline(always)]
pub const fn phase(opener: Shown, answerer: Shown) -> Phase {
    if opener.has(Shown::RESET) || answerer.has(Shown::RESET) {
        return Phase::Reset;
    }
    match (has_finished(opener, answerer), has_finished(answerer, opener)) {
        (true, true) => Phase::Closed,
        (true, false) | (false, true) => Phase::Closing,
        (false, false) if opener.has(Shown::SENT) && answerer.has(Shown::SENT) => Phase::Established,
        (false, false) => Phase::Opening,
    }
}

#[inline(always)]
const fn has_finished(side: Shown, other: Shown) -> bool {
    side.has(Shown::FINISHED) && other.has(Shown::AGREED)
}

/// How long a connection without packets lives, in nanoseconds. TCP: established as long as the kernel's
/// (`nf_conntrack_tcp_timeout_established`), else RFC 5382 REQ-5's four minutes and, where both sides have finished, Linux's TIME_WAIT of a
/// minute doubled (RFC 9293: twice the maximum segment lifetime). UDP: as the kernel's (`nf_conntrack_udp_timeout` and its
/// `_stream`; RFC 4787 REQ-5 allows no less than two minutes). ICMP: RFC 5508 REQ-2. SCTP: as a datagram protocol, with
/// a heartbeat every 30 seconds (RFC 9260 section 16).
#[inline(always)]
pub const fn lifetime(protocol: Protocol, phase: Phase) -> u64 {
    let seconds = match (protocol, phase) {
        (Protocol::TCP, Phase::Established) => 5 * 24 * 60 * 60,
        (Protocol::TCP, Phase::Closed) => 2 * 60,
        (Protocol::TCP, _) => 4 * 60,
        (Protocol::UDP, Phase::Opening) => 30,
        (Protocol::UDP, _) => 2 * 60,
        (Protocol::ICMP | Protocol::ICMPV6, _) => 60,
        _ => 5 * 60,
    };
    seconds * SECOND
}

/// How long a connection of datagrams has to last before it is assured, in nanoseconds: a question and its answer are none
/// (`nf_conntrack_udp_packet`, net/netfilter/nf_conntrack_proto_udp.c).
const STREAM: u64 = 2 * SECOND;

/// Whether no other connection may take the room of one with these entries: both sides have sent, and it has not ended.
#[inline(always)]
pub const fn is_assured(one: &Translation, other: &Translation, now: u64) -> bool {
    let lives = matches!(phase(Shown(one.shown), Shown(other.shown)), Phase::Established | Phase::Closing);
    let is_tcp = one.becomes.protocol == Protocol::TCP.0;
    lives && (is_tcp || now.saturating_sub(one.begun) >= STREAM)
}

/// Whether a TCP segment with these flags opens a connection.
#[inline(always)]
pub const fn opens(flags: u8) -> bool {
    flags & (TCP_SYN | TCP_ACK | TCP_FIN | TCP_RST) == TCP_SYN
}

/// What a packet means for the connection of its tuple's two entries. `asks` says whether it may begin one: it comes from the
/// opener's side and is no TCP segment, or one that [`opens`]. `now` is `CLOCK_BOOTTIME` in nanoseconds; CPUs may read it in
/// another order than packets come.
#[inline(always)]
pub const fn fate(protocol: Protocol, opener: Direction, answerer: Direction, asks: bool, now: u64) -> Fate {
    let phase = phase(opener.shown, answerer.shown);
    let touched = if opener.touched > answerer.touched { opener.touched } else { answerer.touched };
    let is_over = now.saturating_sub(touched) >= lifetime(protocol, phase);
    match phase {
        Phase::Closed | Phase::Reset if asks => Fate::Renews,
        _ if is_over && asks => Fate::Renews,
        _ if is_over => Fate::Strays,
        _ => Fate::Continues,
    }
}

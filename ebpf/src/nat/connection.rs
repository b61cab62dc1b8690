//! How long a translated connection is remembered, and when its tuple may begin another one.
//!
//! Each direction has an entry of its own, and only its own packets write it: what they have [`Shown`] and when the last
//! one came. What the connection has come to is told from both, so that two CPUs never write one word in turn. A segment's
//! sequence number is not looked at; therefore a reset is believed only until its sender sends on (RFC 7857 section 2.2).

use crate::wire::Protocol;

const SECOND: u64 = 1_000_000_000;

/// The TCP header's flags (RFC 9293 section 3.1).
const TCP_FIN: u8 = 1;
const TCP_SYN: u8 = 2;
const TCP_RST: u8 = 4;
const TCP_ACK: u8 = 16;

/// What the packets of one direction have shown so far.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shown(pub u32);

impl Shown {
    /// Nothing yet.
    pub const NOTHING: Self = Self(0);
    const SENT: u32 = 1;
    const FINISHED: u32 = 2;
    const RESET: u32 = 4;

    /// After one more TCP segment with these flags. A SYN alone says nothing: the other side may never have had it.
    #[inline(always)]
    #[must_use]
    pub const fn segment(self, flags: u8) -> Self {
        if flags & TCP_RST != 0 {
            return Self(self.0 | Self::RESET);
        }
        let sent = if flags & TCP_ACK != 0 { Self::SENT } else { 0 };
        let finished = if flags & TCP_FIN != 0 { Self::FINISHED } else { 0 };
        Self((self.0 & !Self::RESET) | sent | finished)
    }

    /// After one more packet, with TCP's flags where it has them.
    #[inline(always)]
    #[must_use]
    pub const fn after(self, flags: Option<u8>) -> Self {
        match flags {
            Some(flags) => self.segment(flags),
            None => self.datagram(),
        }
    }

    /// After one more packet of a protocol without connections.
    #[inline(always)]
    #[must_use]
    pub const fn datagram(self) -> Self {
        Self(self.0 | Self::SENT)
    }

    const fn has(self, bit: u32) -> bool {
        self.0 & bit != 0
    }
}

/// One direction of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Direction {
    /// What its packets have shown.
    pub shown: Shown,
    /// When the last one came, in nanoseconds of `CLOCK_BOOTTIME`.
    pub touched: u64,
}

impl Direction {
    /// After one more packet at `now`.
    #[inline(always)]
    #[must_use]
    pub const fn after(self, flags: Option<u8>, now: u64) -> Self {
        Self { shown: self.shown.after(flags), touched: now }
    }
}

/// What a connection has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Only one side has been heard, or the handshake is not over.
    Opening,
    /// Both sides speak.
    Established,
    /// One side has finished.
    Closing,
    /// Both sides have finished.
    Closed,
    /// A side has reset it.
    Reset,
}

/// What a packet is to a tuple's entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It belongs to their connection.
    Continues,
    /// It begins a new connection; theirs is over.
    Renews,
    /// Their connection is over and it begins none: it must not meet their state.
    Strays,
}

/// What a connection has come to, by what its opener and the other side have shown.
#[inline(always)]
pub const fn phase(opener: Shown, answerer: Shown) -> Phase {
    if opener.has(Shown::RESET) || answerer.has(Shown::RESET) {
        return Phase::Reset;
    }
    match (opener.has(Shown::FINISHED), answerer.has(Shown::FINISHED)) {
        (true, true) => Phase::Closed,
        (true, false) | (false, true) => Phase::Closing,
        (false, false) if opener.has(Shown::SENT) && answerer.has(Shown::SENT) => Phase::Established,
        (false, false) => Phase::Opening,
    }
}

/// How long a connection without packets is remembered, in nanoseconds. TCP: RFC 5382 REQ-5 (established two hours and
/// four minutes, else four minutes) and, where both sides have finished, Linux's TIME_WAIT of a minute doubled (RFC 9293:
/// twice the maximum segment lifetime). UDP: RFC 4787 REQ-5. ICMP: RFC 5508 REQ-2. SCTP: as a datagram protocol, with
/// a heartbeat every 30 seconds (RFC 9260 section 16).
#[inline(always)]
pub const fn lifetime(protocol: Protocol, phase: Phase) -> u64 {
    let seconds = match (protocol, phase) {
        (Protocol::TCP, Phase::Established) => 124 * 60,
        (Protocol::TCP, Phase::Closed) => 2 * 60,
        (Protocol::TCP, _) => 4 * 60,
        (Protocol::ICMP | Protocol::ICMPV6, _) => 60,
        _ => 5 * 60,
    };
    seconds * SECOND
}

/// Whether a TCP segment with these flags asks for a connection.
#[inline(always)]
pub const fn opens(flags: u8) -> bool {
    flags & (TCP_SYN | TCP_ACK | TCP_FIN | TCP_RST) == TCP_SYN
}

/// What a packet is to the connection that its tuple's two entries hold. `asks` says whether it may begin one: it comes
/// from the opener's side and is no TCP segment, or one that [`opens`]. `now` is `CLOCK_BOOTTIME` in nanoseconds; CPUs
/// may read it in another order than packets come.
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

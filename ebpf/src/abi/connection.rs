//! The state of one direction of a translated connection, as `ASSURED` and `FLOWS` have it.

use super::translation::{TRACKED, TRANSLATION_SIDE, TRANSLATION_SLOT, Translation, TupleKey};
use crate::wire::{Step, TCP_ACK, TCP_FIN, TCP_RST};

/// Sequence numbers from the last acknowledged one on within which a RST fits: half of what a Linux receiver may have room for
/// unless somebody has changed that (`tcp_rmem`, Documentation/networking/ip-sysctl.rst).
const WINDOW: u32 = 16 << 20;

/// What the packets of one direction have shown so far ([`super::translation::Translation::shown`]).
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shown(pub u32);

impl Shown {
    /// Nothing yet.
    pub const NOTHING: Self = Self(0);
    /// It has sent a datagram, or a TCP segment with ACK.
    pub const SENT: Self = Self(1);
    /// It has sent a FIN.
    pub const FINISHED: Self = Self(2);
    /// It has sent a RST that fits, and nothing since.
    pub const RESET: Self = Self(4);
    /// It has acknowledged the other side's FIN.
    pub const AGREED: Self = Self(8);
    /// What it has acknowledged last is known. It is not for a connection from an earlier layout before its next segment.
    pub const KNOWN: Self = Self(16);

    /// After a connection's first packet: a SYN shows nothing, as the other side may not have received it.
    #[inline(always)]
    pub const fn opener(is_tcp: bool) -> Self {
        if is_tcp { Self::NOTHING } else { Self::SENT }
    }

    /// Whether all of it has been shown.
    #[inline(always)]
    pub const fn has(self, shown: Self) -> bool {
        self.0 & shown.0 == shown.0
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

impl Translation {
    /// What decides whether the connection goes on.
    #[inline(always)]
    pub const fn direction(&self) -> Direction {
        Direction { shown: Shown(self.shown), touched: self.touched }
    }

    /// Whether this is the entry of `key`, and `other` that of the same connection's other direction. What a processor has written for another
    /// one to read at the same moment is neither.
    #[inline(always)]
    pub const fn belongs_to(&self, key: &TupleKey, other: &Self) -> bool {
        // Verifier: one question.
        let ([a, b, c, d], [e, f, g, h]) = (other.becomes.destination.words(), key.source.words());
        let ([i, j, k, l], [m, n, o, p]) = (other.becomes.source.words(), key.destination.words());
        let addresses = (a ^ e) | (b ^ f) | (c ^ g) | (d ^ h) | (i ^ m) | (j ^ n) | (k ^ o) | (l ^ p);
        let ports = (other.becomes.destination_port.half() ^ key.source_port.half())
            | (other.becomes.source_port.half() ^ key.destination_port.half());
        let rest = (other.becomes.domain ^ key.domain) | (other.becomes.protocol ^ key.protocol) as u32;
        (self.begun ^ other.begun) | (addresses | ports as u32 | rest) as u64 == 0
    }

    /// Whether it is a host port's, and no container's or socket's that has begun it.
    #[inline(always)]
    pub const fn is_of_host_port(&self) -> bool {
        matches!(self.holder, 0 | TRACKED)
    }

    /// The counter slot of its container; [`super::NO_SLOT`] where an earlier agent's programs have begun it.
    #[inline(always)]
    pub const fn slot(&self) -> u32 {
        self.flags >> TRANSLATION_SLOT
    }

    /// Who has opened the connection, as [`super::share::Share::due`] counts. Verifier: a number, and no choice.
    #[inline(always)]
    pub const fn side(&self) -> usize {
        (self.flags >> TRANSLATION_SIDE & 3) as usize
    }

    /// Whether both directions have sent by now, and this one had not with what it had `shown`: the opening is answered.
    #[inline(always)]
    pub const fn answers(&self, shown: u32, other: &Self) -> bool {
        let sent = Shown::SENT.0;
        shown & sent == 0 && self.shown & other.shown & sent != 0
    }

    /// Updates this direction by one more packet at `now`, with what a TCP segment says; `other` is the other direction.
    #[inline(always)]
    pub fn advance(&mut self, other: &Self, step: Option<Step>, now: u64) {
        let Some(step) = step else {
            self.shown |= Shown::SENT.0;
            self.touched = now;
            return;
        };
        let ends = step.flags & (TCP_FIN | TCP_RST) != 0 || Shown(other.shown).has(Shown::FINISHED);
        if ends && !self.end_by(other, step.flags, step.number, step.acknowledges) {
            return;
        }
        self.touched = now;
        if step.flags & TCP_RST != 0 {
            return;
        }
        let sent = if step.flags & TCP_ACK != 0 { Shown::SENT.0 | Shown::KNOWN.0 } else { 0 };
        self.shown = self.shown & !Shown::RESET.0 | sent;
        if sent != 0 {
            self.acknowledged = step.acknowledges;
        }
    }

    /// The same for what ends a connection. Whether the segment is to be believed: a RST that does not fit changes nothing. A FIN is noted, and
    /// counts when the other side has acknowledged it: whoever forges one would have to guess a number that will be acknowledged exactly.
    #[inline(always)]
    fn end_by(&mut self, other: &Self, flags: u8, number: u32, acknowledges: u32) -> bool {
        let others = Shown(other.shown);
        if flags & TCP_RST != 0 {
            let fits = other.is_fitting_reset(number);
            if fits {
                self.shown |= Shown::RESET.0;
            }
            return fits;
        }
        if flags & TCP_ACK != 0 && others.has(Shown::FINISHED) && acknowledges == other.end {
            self.shown |= Shown::AGREED.0;
        }
        if flags & TCP_FIN != 0 && !others.has(Shown::AGREED) && other.is_yet_to_hear(number) {
            self.shown |= Shown::FINISHED.0;
            self.end = number;
        }
        true
    }

    /// Whether this side has not acknowledged a sequence number yet.
    #[inline(always)]
    const fn is_yet_to_hear(&self, number: u32) -> bool {
        !Shown(self.shown).has(Shown::KNOWN) || (number.wrapping_sub(self.acknowledged) as i32) > 0
    }

    /// Whether a RST to this side, with this sequence number, is one that the side may believe (RFC 9293 section 3.5.2). Before it has
    /// acknowledged anything any is: it refuses a connection.
    #[inline(always)]
    const fn is_fitting_reset(&self, number: u32) -> bool {
        !Shown(self.shown).has(Shown::KNOWN) || number.wrapping_sub(self.acknowledged) < WINDOW
    }
}

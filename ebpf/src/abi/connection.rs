//! The state of one direction of a translated connection, as `FLOWS` has it.

use crate::wire::{TCP_ACK, TCP_FIN, TCP_RST};

/// What the packets of one direction have shown so far ([`super::translation::Translation::shown`]).
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shown(pub u32);

impl Shown {
    /// Nothing yet.
    pub const NOTHING: Self = Self(0);
    pub(crate) const SENT: u32 = 1;
    pub(crate) const FINISHED: u32 = 2;
    pub(crate) const RESET: u32 = 4;

    /// After one more TCP segment with these flags. A SYN alone shows nothing: the other side may not have received it.
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

    pub(crate) const fn has(self, bit: u32) -> bool {
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

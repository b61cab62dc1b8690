//! What is known of a port's limit by those who see what it sends.

use zerocopy::{Immutable, IntoBytes};

/// `POLICERS`: what a port may send, by its counter slot. Written by the agent; the programs write `due` only. Read for
/// ports with [`super::PORT_POLICED`].
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Immutable, IntoBytes)]
pub struct Policer {
    /// When all that was sent so far is paid for, in nanoseconds of `CLOCK_MONOTONIC`.
    pub due: u64,
    /// How long a packet of [`PRICED`] bytes takes at the rate, in nanoseconds.
    pub price: u64,
    /// How far ahead of now `due` may be when a packet comes, in nanoseconds.
    pub tolerance: u64,
}

/// The bytes that [`Policer::price`] is for: so many that a price in whole nanoseconds is exact enough at any rate.
pub const PRICED: u64 = 1 << 14;

const _: () = assert!(size_of::<Policer>() == 24);

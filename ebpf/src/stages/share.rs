//! share: whether a container may have one more translated connection.
//!
//! Connections that have not been answered may make room for each other, so they are bounded by the rate at which a container, or the clients
//! of its host ports, open them; an answer pays the opening back. Assured connections make room for nobody, so they are bounded by
//! number. Both are the container's own: a flood ends no assured connection of another container's.
//!
//! So are the flows with neighbours that others' rules have let through.
//!
//! The rate is virtual scheduling, as in [`crate::stages::police`].

use crate::Tables;
use crate::abi::ACCEPTED_PRICE;
use crate::abi::share::{Share, Side};
use crate::verdict::{DropReason, PassReason, Stop};

/// Openings without an answer may be ahead of their rate by a second's.
const TOLERANCE: u64 = 1_000_000_000;

/// Why a container may have no more connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Excess {
    /// It has as many assured ones as it may have.
    Connections,
    /// Too many have been opened lately that nobody has answered.
    Openings,
}

impl Excess {
    /// For what the kernel masquerades.
    #[inline(always)]
    pub const fn passed(self) -> Stop {
        Stop::Pass(match self {
            Self::Connections => PassReason::ConnectionLimit,
            Self::Openings => PassReason::OpeningRate,
        })
    }

    /// For what nobody else would take to the container.
    #[inline(always)]
    pub const fn dropped(self) -> Stop {
        Stop::Drop(match self {
            Self::Connections => DropReason::ConnectionLimit,
            Self::Openings => DropReason::OpeningRate,
        })
    }
}

/// Charges an opening to the container with the counter slot `slot`, whether it finds a free tuple then or not. `now` is
/// `CLOCK_BOOTTIME` in nanoseconds.
///
/// # Errors
/// [`Excess`]; nothing is charged.
#[inline(always)]
pub fn charge<T: Tables>(slot: u32, side: Side, now: u64, tables: &T) -> Result<(), Excess> {
    let Some(share) = tables.share(slot) else { return Ok(()) };
    if !share.has_room() {
        return Err(Excess::Connections);
    }
    if share.price == 0 || pay(&share, (slot, side), share.price as u64, now, tables) {
        Ok(())
    } else {
        Err(Excess::Openings)
    }
}

/// Charges a flow that others' rules have let through to the container that began it, with the counter slot `slot`. Says whether it may be noted.
#[inline(always)]
pub fn charge_neighbor<T: Tables>(slot: u32, now: u64, tables: &T) -> bool {
    tables.share(slot).is_none_or(|share| pay(&share, (slot, Side::Neighbor), ACCEPTED_PRICE, now, tables))
}

/// Charges `price` nanoseconds, unless too much is due already.
#[inline(always)]
fn pay<T: Tables>(share: &Share, (slot, side): (u32, Side), price: u64, now: u64, tables: &T) -> bool {
    let due = share.due[side as usize];
    if due > now.saturating_add(TOLERANCE) {
        return false;
    }
    if due < now {
        tables.begin_openings(slot, side, now);
    }
    tables.charge_opening(slot, side, price);
    true
}

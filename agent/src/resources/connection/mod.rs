//! Translated connections: pairs of entries in `ASSURED` and `FLOWS`, their sweep, their containers' shares and their volumes.

mod entries;
pub(crate) mod handover;
pub(crate) mod pairs;
mod shares;
mod state;
mod sweep;
pub(crate) mod table;
mod tally;
mod tracked;
pub(crate) mod volumes;

pub(crate) use self::entries::Entries;
pub(crate) use self::shares::drift;
pub(crate) use self::state::Sweeping;
pub(crate) use self::tally::Tallies;

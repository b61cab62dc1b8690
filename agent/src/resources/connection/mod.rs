//! Translated connections: pairs of entries in `FLOWS`, their sweep and their volumes.

pub(crate) mod pairs;
mod state;
mod sweep;
pub(crate) mod table;
mod tally;
pub(crate) mod volumes;

pub(crate) use self::state::Sweeping;
pub(crate) use self::tally::Tallies;

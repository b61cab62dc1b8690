//! Translated connections: pairs of entries in `FLOWS`, their sweep and their volumes; and the connections that are the kernel's.

mod former;
mod kernel_flows;
pub(crate) mod pairs;
mod state;
mod sweep;
pub(crate) mod table;
mod tally;
pub(crate) mod volumes;

pub(crate) use self::former::Former;
pub(crate) use self::state::Sweeping;
pub(crate) use self::tally::Tallies;

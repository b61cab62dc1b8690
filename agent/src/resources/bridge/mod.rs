//! Bridges with attachments: their program and entries, gateway addresses, foreign ports, and what becomes of them when one is deleted.

mod applied;
mod foreign_ports;
mod gateway_addresses;
mod observed;
mod orphan;
mod reattached;
mod sparing;
mod state;

pub(crate) use self::foreign_ports::leads_out;
pub(crate) use self::state::{Gateways, Orphan};

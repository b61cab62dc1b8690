//! `guard_from`: tc ingress of a restricted port, behind `from_container` and `from_mapped`.

use crate::Tables;
use crate::stages::{count, guard};
use crate::verdict::Verdict;
use crate::wire::Packet;

/// The whole program: lets on what the port's programs have marked, and drops the rest.
#[inline(always)]
pub fn run<P: Packet, T: Tables>(packet: &mut P, here: u32, tables: &T) -> Verdict {
    guard::require(packet, here, tables, |verdict, port, bytes| {
        count::sent(verdict, port, here, bytes, tables);
    })
}

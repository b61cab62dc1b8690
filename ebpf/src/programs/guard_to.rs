//! `guard_to`: tc egress of a restricted port, behind `to_container`.

use crate::Tables;
use crate::stages::{count, guard};
use crate::verdict::Verdict;
use crate::wire::Packet;

/// The whole program: lets on what `to_container` has marked, and drops the rest.
#[inline(always)]
pub fn run<P: Packet, T: Tables>(packet: &mut P, here: u32, tables: &T) -> Verdict {
    guard::require(packet, here, tables, |verdict, port, bytes| {
        count::received(verdict, port, here, bytes, tables);
    })
}

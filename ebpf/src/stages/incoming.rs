//! incoming: flows of datagrams that the node has sent or routed to a container, in `INCOMING_FLOWS`: whatever answers them belongs to them, and
//! begins nothing.

use crate::Tables;
use crate::abi::FlowKey;

/// How long after its last datagram a flow is known, in nanoseconds: as connection tracking does (`nf_conntrack_udp_timeout_stream`).
const REMEMBERED: u64 = 120_000_000_000;

/// How long what was seen need not be renewed, in nanoseconds.
const RENEWED: u64 = 1_000_000_000;

/// Records a datagram's flow.
#[inline(always)]
pub fn note<T: Tables>(flow: &FlowKey, tables: &T) {
    let now = tables.boot_time();
    let age = tables.incoming_flow(flow).map(|seen| now.saturating_sub(seen));
    if age.is_none_or(|age| age >= RENEWED) {
        tables.record_incoming_flow(flow, now);
    }
}

/// Whether a datagram of a flow answers one of these.
#[inline(always)]
pub fn is_answered<T: Tables>(flow: &FlowKey, tables: &T) -> bool {
    let now = tables.boot_time();
    tables.incoming_flow(flow).is_some_and(|seen| now.saturating_sub(seen) < REMEMBERED)
}

//! A queue that holds some packets to a rate and lets the others pass it by: `htb` at the root with one class, and a filter of classic
//! BPF that says which packets are that class's (net/sched/sch_htb.c, net/sched/cls_bpf.c).
//!
//! What the filter answers is a class; `htb` takes its own handle for "at once". The class's packets wait in a `tbf` that hinders none, and
//! cuts those that are too large for the queue. The `htb` has the handle of [`super::tbf`]'s buckets, so
//! that whoever clears one clears the other.

use netlink_packet_core::{DefaultNla, NLM_F_CREATE};
use netlink_packet_route::RouteNetlinkMessage;

use super::tbf::{self, UNHINDERED};
use super::{ETHERNET, HANDLE, RATE, RATESPEC, ROOT, Rate, TrafficControl, about, clear_root, with};
use crate::attribute::{find, number};
use crate::connection::Connection;
use crate::error::NetlinkError;
use crate::request::{MAKE, Request};

/// The class of what is limited.
pub const CLASS: u32 = HANDLE | 1;

pub(super) const TCA_HTB_PARMS: u16 = 1;
pub(super) const TCA_HTB_INIT: u16 = 2;
pub(super) const TCA_HTB_RATE64: u16 = 6;
pub(super) const TCA_HTB_CEIL64: u16 = 7;
const TCA_BPF_OPS_LEN: u16 = 4;
const TCA_BPF_OPS: u16 = 5;

/// The version of `htb`'s messages (`HTB_VER` without its minor number), and what it divides rates by where a class has no
/// quantum; ours has one.
pub(super) const VERSION: u32 = 3;
pub(super) const RATE_TO_QUANTUM: u32 = 10;
pub(super) const QUANTUM: u32 = 64 << 10;

/// Nanoseconds in a tick of the scheduler (`PSCHED_SHIFT`).
pub(super) const TICK: u64 = 64;

/// Priority 1, all protocols (`ETH_P_ALL` in network order).
pub(super) const EVERYTHING: u32 = 1 << 16 | (0x0003_u16.to_be() as u32);

/// Which packets are limited.
#[derive(Debug)]
pub struct Classifier {
    /// A program of classic BPF (`struct sock_filter`) that answers [`CLASS`] or [`HANDLE`].
    pub program: Vec<[u8; 8]>,
    /// Whether packets are limited that the program cannot read.
    pub unread: bool,
}

/// Limits what the classifier says of what leaves by an interface; whatever was queued there by us goes.
///
/// # Errors
/// [`NetlinkError::Refused`]: `EEXIST` where another user's discipline is at the root, `ENOENT` where the kernel has no `htb`.
pub fn set(
    connection: &mut Connection,
    index: u32,
    rate: Rate,
    classifier: &Classifier,
) -> Result<(), NetlinkError> {
    clear_root(connection, index)?;
    let made = requests(index, rate, classifier).into_iter().try_for_each(|request| connection.run(request));
    if made.is_err() {
        clear_root(connection, index)?;
    }
    made
}

fn requests(index: u32, rate: Rate, classifier: &Classifier) -> [Request; 4] {
    let default = if classifier.unread { CLASS & 0xffff } else { 0 };
    // struct tc_htb_glob: version, rate2quantum, defcls, debug, direct_pkts.
    let glob = [VERSION, RATE_TO_QUANTUM, default, 0, 0].into_iter().flat_map(u32::to_ne_bytes).collect();
    let queue = with(about(index, HANDLE, ROOT), "htb", vec![DefaultNla::new(TCA_HTB_INIT, glob)]);
    let class = with(about(index, CLASS, HANDLE), "htb", class(rate));
    let queued = Rate { rate: UNHINDERED, burst: rate.whole, ..rate };
    let waiting = with(about(index, 0, CLASS), "tbf", tbf::options(queued));
    let count = u16::try_from(classifier.program.len()).unwrap_or(u16::MAX);
    let program = vec![
        DefaultNla::new(TCA_BPF_OPS_LEN, count.to_ne_bytes().to_vec()),
        DefaultNla::new(TCA_BPF_OPS, classifier.program.concat()),
    ];
    let mut filter = with(about(index, 0, HANDLE), "bpf", program);
    filter.header.info = EVERYTHING;
    [
        Request::new("add the queue", RouteNetlinkMessage::NewQueueDiscipline(queue), MAKE),
        Request::new("add the queue's class", RouteNetlinkMessage::NewTrafficClass(class), MAKE),
        Request::new("bound the queue", RouteNetlinkMessage::NewQueueDiscipline(waiting), NLM_F_CREATE),
        Request::new("add the queue's filter", RouteNetlinkMessage::NewTrafficFilter(filter), MAKE),
    ]
}

/// Whether an interface is shaped so, by the kernel's own word; none if it has no such queue of ours.
pub fn is_set(connection: &mut Connection, index: u32, rate: Rate) -> Result<Option<bool>, NetlinkError> {
    let classes = RouteNetlinkMessage::GetTrafficClass(about(index, 0, 0));
    let classes = connection.list(Request::<TrafficControl>::dump("list the queue's classes", classes))?;
    let ours = classes.iter().find(|class| class.index == index && class.handle == CLASS);
    let Some(class) = ours else { return Ok(None) };
    let filters = RouteNetlinkMessage::GetTrafficFilter(about(index, 0, HANDLE));
    let filters = connection.list(Request::<TrafficControl>::dump("list the queue's filters", filters))?;
    Ok(Some(rate_of(&class.options) == Some(rate.rate) && !filters.is_empty()))
}

fn class(Rate { rate, burst, .. }: Rate) -> Vec<DefaultNla> {
    let low = u32::try_from(rate).unwrap_or(u32::MAX);
    let burst = u128::from(burst) * 1_000_000_000 / u128::from(rate.max(1)) / u128::from(TICK);
    let burst = u32::try_from(burst).unwrap_or(u32::MAX);
    // struct tc_htb_opt: rate, ceil, buffer, cbuffer, quantum, level, prio.
    let mut parameters = vec![0; 2 * RATESPEC + 20];
    for spec in [0, RATESPEC] {
        parameters[spec + 1] = ETHERNET;
        parameters[spec + RATE..spec + RATESPEC].copy_from_slice(&low.to_ne_bytes());
    }
    for (at, word) in [(0, burst), (4, burst), (8, QUANTUM)] {
        parameters[2 * RATESPEC + at..2 * RATESPEC + at + 4].copy_from_slice(&word.to_ne_bytes());
    }
    let mut options = vec![DefaultNla::new(TCA_HTB_PARMS, parameters)];
    if low == u32::MAX {
        options.extend(
            [TCA_HTB_RATE64, TCA_HTB_CEIL64].map(|kind| DefaultNla::new(kind, rate.to_ne_bytes().to_vec())),
        );
    }
    options
}

/// The rate of a class, in bytes a second.
fn rate_of(options: &[u8]) -> Option<u64> {
    let rate64 = find(options, TCA_HTB_RATE64).and_then(|rate| rate.first_chunk());
    match rate64 {
        Some(rate) => Some(u64::from_ne_bytes(*rate)),
        None => find(options, TCA_HTB_PARMS)?.get(RATE..).and_then(number).map(u64::from),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribute::emitted;

    #[test]
    fn the_rate_that_is_asked_for_is_read_back() {
        for rate in [1, 1_250_000, u64::from(u32::MAX) + 1] {
            let options = emitted(&&class(Rate { rate, burst: 15_000, whole: 15_000, queue: 48_000 })[..]);
            assert_eq!(rate_of(&options), Some(rate));
        }
    }
}

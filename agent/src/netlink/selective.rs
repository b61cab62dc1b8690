//! A queue that holds some packets to a rate and lets the others pass it by: `htb` at the root with one class, and a filter of
//! classic BPF that says which packets are that class's (net/sched/sch_htb.c, net/sched/cls_bpf.c).
//!
//! What the filter answers is a class; `htb` takes its own handle for "at once". It has the handle of [`super::shaper`]'s
//! buckets, so that whoever clears one clears the other.

use nix::libc;

use super::attribute::attribute;
use super::shaper::{self, HANDLE, ROOT};
use super::socket::{self, NetlinkError, RequestSocket};
use super::traffic_control::{TCA_KIND, TCA_OPTIONS, TCMSG, split};
use crate::shape::Bucket;
use crate::subnets::{End, Instruction, Subnets};

/// The class of what is limited.
const CLASS: u32 = HANDLE | 1;

const TCA_HTB_PARMS: u16 = 1;
const TCA_HTB_INIT: u16 = 2;
const TCA_HTB_RATE64: u16 = 6;
const TCA_HTB_CEIL64: u16 = 7;
const TCA_BPF_OPS_LEN: u16 = 4;
const TCA_BPF_OPS: u16 = 5;

/// The version of `htb`'s messages (`HTB_VER` without its minor number), and what it divides rates by where a class has no
/// quantum; ours has one.
const VERSION: u32 = 3;
const RATE_TO_QUANTUM: u32 = 10;
const QUANTUM: u32 = 64 << 10;

/// `TC_LINKLAYER_ETHERNET`: lengths need no table.
const ETHERNET: u8 = 1;

/// Nanoseconds in a tick of the scheduler (`PSCHED_SHIFT`).
const TICK: u64 = 64;

/// Priority 1, all protocols (`ETH_P_ALL` in network order).
const EVERYTHING: u32 = 1 << 16 | (0x0003_u16.to_be() as u32);

/// Bytes of `struct tc_ratespec`, and where the rate is in it.
const RATESPEC: usize = 12;
const RATE: usize = 8;

/// Limits what leaves by an interface to or from these subnets; whatever was queued there by us goes.
///
/// # Errors
/// Netlink's: `EEXIST` where another user's discipline is at the root, `ENOENT` where the kernel has no `htb`.
pub fn set(
    socket: &mut RequestSocket,
    ifindex: u32,
    bucket: Bucket,
    subnets: &Subnets,
    end: End,
) -> Result<(), NetlinkError> {
    shaper::clear(socket, ifindex)?;
    let made = make(socket, ifindex, bucket, &subnets.program(end, CLASS, HANDLE), unread(subnets));
    if made.is_err() {
        shaper::clear(socket, ifindex)?;
    }
    made
}

/// The minor number of the class of packets that the program cannot read: they are limited unless only some are.
fn unread(subnets: &Subnets) -> u32 {
    if subnets.limited { 0 } else { CLASS & 0xffff }
}

fn make(
    socket: &mut RequestSocket,
    ifindex: u32,
    bucket: Bucket,
    program: &[Instruction],
    default: u32,
) -> Result<(), NetlinkError> {
    // struct tc_htb_glob: version, rate2quantum, defcls, debug, direct_pkts.
    let glob: Vec<u8> =
        [VERSION, RATE_TO_QUANTUM, default, 0, 0].iter().flat_map(|word| word.to_ne_bytes()).collect();
    let queue = message(ifindex, HANDLE, ROOT, 0, "htb", &attribute(TCA_HTB_INIT, &glob));
    socket.make(libc::RTM_NEWQDISC, &queue)?;
    let class = message(ifindex, CLASS, HANDLE, 0, "htb", &class(bucket));
    socket.make(libc::RTM_NEWTCLASS, &class)?;
    let waiting = message(ifindex, 0, CLASS, 0, "bfifo", &bucket.queue.to_ne_bytes());
    socket.create(libc::RTM_NEWQDISC, &waiting)?;
    let count = u16::try_from(program.len()).unwrap_or(u16::MAX);
    let code: Vec<u8> = program.iter().flat_map(|instruction| instruction.bytes()).collect();
    let filter = [attribute(TCA_BPF_OPS_LEN, &count.to_ne_bytes()), attribute(TCA_BPF_OPS, &code)].concat();
    socket.make(libc::RTM_NEWTFILTER, &message(ifindex, 0, HANDLE, EVERYTHING, "bpf", &filter))
}

/// Whether an interface is shaped so, by the kernel's own word; none if it has no such queue of ours.
///
/// # Errors
/// Netlink's.
pub fn is_set(
    socket: &mut RequestSocket,
    ifindex: u32,
    bucket: Bucket,
) -> Result<Option<bool>, NetlinkError> {
    let rate = |payload: &[u8]| {
        let (head, attributes) = split(payload)?;
        (head.ifindex == ifindex && head.handle == CLASS).then(|| rate_of(attributes))
    };
    let mut request = [0; TCMSG];
    request[4..8].copy_from_slice(&ifindex.to_ne_bytes());
    let rates = socket.dump(libc::RTM_GETTCLASS, &request, rate)?;
    let Some(rate) = rates.first() else { return Ok(None) };
    request[12..16].copy_from_slice(&HANDLE.to_ne_bytes());
    let filters = socket.dump(libc::RTM_GETTFILTER, &request, |payload| split(payload).map(drop))?;
    Ok(Some(*rate == Some(bucket.rate) && !filters.is_empty()))
}

/// A message about something below `parent`.
fn message(ifindex: u32, handle: u32, parent: u32, info: u32, kind: &str, options: &[u8]) -> Vec<u8> {
    let mut head = [0; TCMSG];
    for (at, word) in [(4, ifindex), (8, handle), (12, parent), (16, info)] {
        head[at..at + 4].copy_from_slice(&word.to_ne_bytes());
    }
    let kind = attribute(TCA_KIND, format!("{kind}\0").as_bytes());
    [head.to_vec(), kind, attribute(TCA_OPTIONS, options)].concat()
}

fn class(bucket: Bucket) -> Vec<u8> {
    let rate = u32::try_from(bucket.rate).unwrap_or(u32::MAX);
    let burst = u128::from(bucket.burst) * 1_000_000_000 / u128::from(bucket.rate.max(1)) / u128::from(TICK);
    let burst = u32::try_from(burst).unwrap_or(u32::MAX);
    // struct tc_htb_opt: rate, ceil, buffer, cbuffer, quantum, level, prio.
    let mut parameters = [0; 2 * RATESPEC + 20];
    for spec in [0, RATESPEC] {
        parameters[spec + 1] = ETHERNET;
        parameters[spec + RATE..spec + RATESPEC].copy_from_slice(&rate.to_ne_bytes());
    }
    for (at, word) in [(0, burst), (4, burst), (8, QUANTUM)] {
        parameters[2 * RATESPEC + at..2 * RATESPEC + at + 4].copy_from_slice(&word.to_ne_bytes());
    }
    let mut options = attribute(TCA_HTB_PARMS, &parameters);
    if rate == u32::MAX {
        options.extend(attribute(TCA_HTB_RATE64, &bucket.rate.to_ne_bytes()));
        options.extend(attribute(TCA_HTB_CEIL64, &bucket.rate.to_ne_bytes()));
    }
    options
}

/// The rate of a class, in bytes a second.
fn rate_of(attributes: &[u8]) -> Option<u64> {
    let (mut rate, mut rate64) = (None, None);
    socket::attributes(attributes, |kind, value| {
        if kind != TCA_OPTIONS {
            return;
        }
        socket::attributes(value, |kind, value| match kind {
            TCA_HTB_PARMS => rate = value.get(RATE..).and_then(socket::number).map(u64::from),
            TCA_HTB_RATE64 => rate64 = value.first_chunk().copied().map(u64::from_ne_bytes),
            _ => {}
        });
    });
    rate64.or(rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_that_is_asked_for_is_read_back() {
        for rate in [1, 1_250_000, u64::from(u32::MAX) + 1] {
            let options = class(Bucket { rate, burst: 15_000, queue: 48_000 });
            assert_eq!(rate_of(&attribute(TCA_OPTIONS, &options)), Some(rate));
        }
    }
}

//! A link's capacity in shares: `htb` at its root, one class for all of the link, and below that one class a share and one for all else
//! (net/sched/sch_htb.c). Which packets are a share's, [`super::selector`] says.

use std::collections::{BTreeMap, BTreeSet};

use netlink_packet_core::{DefaultNla, NLM_F_CREATE, NLM_F_REPLACE};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::tc::TcAttribute;

use super::htb::{
    QUANTUM, RATE_TO_QUANTUM, TCA_HTB_CEIL64, TCA_HTB_INIT, TCA_HTB_PARMS, TCA_HTB_RATE64, TICK, VERSION,
};
use super::{ETHERNET, RATE, RATESPEC, ROOT, TCA_OPTIONS, TrafficControl, about, clear, with};
use crate::attribute::{find, number};
use crate::connection::Connection;
use crate::error::{NetlinkError, unless};
use crate::request::{MAKE, Request};

/// Our handle, "SG" as the major number.
pub const HANDLE: u32 = 0x5347_0000;

const KIND: &str = "htb";

/// What bounds how much waits in a class.
const BOUND: &str = "bfifo";

/// The class of all of the link.
pub const LINK: u16 = 0xfffe;

/// The class of all that is no share's.
pub const REST: u16 = 0xffff;

/// One class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Class {
    /// What it always gets, bytes a second.
    pub rate: u64,
    /// What it gets at most, while others leave it.
    pub ceil: u64,
    /// Bytes that may pass at once.
    pub burst: u32,
    /// Bytes that may wait; none for the class of the link, in which nothing waits.
    pub queue: u32,
    /// Who is first at what others leave; 0 is.
    pub priority: u32,
    /// Bytes that each packet takes beside its own.
    pub overhead: u16,
}

/// What can be read back of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Said {
    rate: u64,
    ceil: u64,
    priority: u32,
    /// Whether it bounds what waits, as every class but the link's does.
    is_bounded: bool,
}

impl Class {
    /// What is read back of it.
    pub fn said(&self) -> Said {
        let Self { rate, ceil, priority, queue, .. } = *self;
        Said { rate, ceil, priority, is_bounded: queue > 0 }
    }
}

/// What is at the root of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Root {
    /// Ours.
    Shared,
    /// What the kernel has put there, of this kind, or nothing.
    Kernel(String),
    /// Another user's, of this kind.
    Other(String),
}

/// What is at the root of a link.
pub fn root(connection: &mut Connection, index: u32) -> Result<Root, NetlinkError> {
    let found = disciplines(connection, index)?;
    let root = found.into_iter().find(|found| found.index == index && found.parent == ROOT);
    Ok(match root {
        None => Root::Kernel(String::new()),
        Some(root) if is_ours(&root) => Root::Shared,
        Some(root) if root.handle == 0 => Root::Kernel(root.kind),
        Some(root) => Root::Other(root.kind),
    })
}

/// The links that have our discipline.
pub fn all(connection: &mut Connection) -> Result<Vec<u32>, NetlinkError> {
    let found = disciplines(connection, 0)?.into_iter();
    Ok(found.filter(is_ours).map(|it| it.index).collect())
}

fn is_ours(found: &TrafficControl) -> bool {
    found.handle == HANDLE && found.parent == ROOT && found.kind == KIND
}

fn disciplines(connection: &mut Connection, index: u32) -> Result<Vec<TrafficControl>, NetlinkError> {
    let message = RouteNetlinkMessage::GetQueueDiscipline(about(index, 0, ROOT));
    connection.list(Request::<TrafficControl>::dump("list the queueing disciplines", message))
}

/// Puts the discipline at the root of a link. Until there are classes it holds nothing up.
///
/// # Errors
/// [`NetlinkError::Refused`]: `EEXIST` where another user's is there, `ENOENT` where the kernel has no `htb`.
pub fn make(connection: &mut Connection, index: u32) -> Result<(), NetlinkError> {
    // struct tc_htb_glob: version, rate2quantum, defcls, debug, direct_pkts.
    let glob = [VERSION, RATE_TO_QUANTUM, REST.into(), 0, 0];
    let glob = glob.into_iter().flat_map(u32::to_ne_bytes).collect();
    let queue = with(about(index, HANDLE, ROOT), KIND, vec![DefaultNla::new(TCA_HTB_INIT, glob)]);
    connection.run(Request::new("add the queue", RouteNetlinkMessage::NewQueueDiscipline(queue), MAKE))
}

/// Takes the discipline away, with all below it; it, or the link, may be gone.
pub fn remove(connection: &mut Connection, index: u32) -> Result<(), NetlinkError> {
    clear(connection, index, HANDLE)
}

/// Adds a class, or changes it. What waits there goes on waiting.
pub fn set_class(
    connection: &mut Connection,
    index: u32,
    minor: u16,
    class: Class,
) -> Result<(), NetlinkError> {
    let parent = if minor == LINK { HANDLE } else { HANDLE | u32::from(LINK) };
    let id = HANDLE | u32::from(minor);
    let message = RouteNetlinkMessage::NewTrafficClass(with(about(index, id, parent), KIND, options(class)));
    let set = Request::new("set a class", message, NLM_F_CREATE);
    if minor == LINK {
        return connection.run(set);
    }
    // Its options are no attributes but a number.
    let limit = DefaultNla::new(TCA_OPTIONS, class.queue.to_ne_bytes().to_vec());
    let mut waiting = about(index, 0, id);
    waiting.attributes = vec![TcAttribute::Kind(BOUND.to_owned()), TcAttribute::Other(limit)];
    let message = RouteNetlinkMessage::NewQueueDiscipline(waiting);
    // In one piece: whoever is killed leaves no class in which anything may wait.
    connection
        .run_all(vec![set, Request::new("bound a class", message, NLM_F_CREATE | NLM_F_REPLACE)])
        .map(|_| ())
}

/// Removes a class and what waits in it; no selector may name it any more. It may be gone.
pub fn remove_class(connection: &mut Connection, index: u32, minor: u16) -> Result<(), NetlinkError> {
    let message = RouteNetlinkMessage::DelTrafficClass(about(index, HANDLE | u32::from(minor), 0));
    let outcome = connection.run(Request::new("remove a class", message, 0));
    unless(outcome, NetlinkError::is_missing)
}

/// The classes of a link.
pub fn classes(connection: &mut Connection, index: u32) -> Result<BTreeMap<u16, Said>, NetlinkError> {
    let message = RouteNetlinkMessage::GetTrafficClass(about(index, 0, 0));
    let found = connection.list(Request::<TrafficControl>::dump("list the classes", message))?;
    let ours = found.into_iter().filter(|it| it.index == index && it.handle & 0xffff_0000 == HANDLE);
    let bounds = disciplines(connection, index)?.into_iter();
    let bounded: BTreeSet<u32> =
        bounds.filter(|it| it.index == index && it.kind == BOUND).map(|it| it.parent).collect();
    let read = |it: TrafficControl| {
        let is_bounded = bounded.contains(&it.handle);
        Some(((it.handle & 0xffff) as u16, said(&it.options, is_bounded)?))
    };
    Ok(ours.filter_map(read).collect())
}

fn options(class: Class) -> Vec<DefaultNla> {
    let Class { rate, ceil, burst, priority, overhead, .. } = class;
    // struct tc_htb_opt: rate, ceil, buffer, cbuffer, quantum, level, prio.
    let mut parameters = vec![0; 2 * RATESPEC + 24];
    let mut large = Vec::new();
    for (spec, rate, kind) in [(0, rate, TCA_HTB_RATE64), (RATESPEC, ceil, TCA_HTB_CEIL64)] {
        let low = u32::try_from(rate).unwrap_or(u32::MAX);
        parameters[spec + 1] = ETHERNET;
        parameters[spec + 2..spec + 4].copy_from_slice(&overhead.to_ne_bytes());
        parameters[spec + RATE..spec + RATESPEC].copy_from_slice(&low.to_ne_bytes());
        if low == u32::MAX {
            large.push(DefaultNla::new(kind, rate.to_ne_bytes().to_vec()));
        }
    }
    let ticks = |rate: u64| {
        let time = u128::from(burst) * 1_000_000_000 / u128::from(rate.max(1)) / u128::from(TICK);
        u32::try_from(time).unwrap_or(u32::MAX)
    };
    let words = [ticks(rate), ticks(ceil), QUANTUM, 0, priority].into_iter().flat_map(u32::to_ne_bytes);
    let words: Vec<_> = words.collect();
    parameters[2 * RATESPEC..2 * RATESPEC + words.len()].copy_from_slice(&words);
    parameters.truncate(2 * RATESPEC + words.len());
    let mut options = vec![DefaultNla::new(TCA_HTB_PARMS, parameters)];
    options.extend(large);
    options
}

fn said(options: &[u8], is_bounded: bool) -> Option<Said> {
    let parameters = find(options, TCA_HTB_PARMS)?;
    let rate = |at: usize, kind| {
        let large = find(options, kind).and_then(|rate| rate.first_chunk());
        let low = parameters.get(at + RATE..).and_then(number)?;
        Some(large.map_or(low.into(), |rate| u64::from_ne_bytes(*rate)))
    };
    let priority = parameters.get(2 * RATESPEC + 16..).and_then(number)?;
    let (rate, ceil) = (rate(0, TCA_HTB_RATE64)?, rate(RATESPEC, TCA_HTB_CEIL64)?);
    Some(Said { rate, ceil, priority, is_bounded })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribute::emitted;

    #[test]
    fn what_is_asked_for_is_what_is_read_back() {
        for (rate, ceil) in [(1, 2), (1_250_000, u64::from(u32::MAX) + 1), (u64::MAX, u64::MAX)] {
            let class = Class { rate, ceil, burst: 15_000, queue: 48_000, priority: 1, overhead: 24 };
            let options = emitted(&&options(class)[..]);
            assert_eq!(said(&options, true), Some(class.said()));
            assert!((0..options.len().min(40)).all(|length| said(&options[..length], true).is_none()));
        }
    }
}

//! TCP connections that others' rules have let through (`OPENED`): connection tracking is told not to check their windows any more, and the programs that
//! it does not. Those that the kernel translates are [`super::carried`].

use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::thread;
use std::time::{Duration, Instant};

use aya::maps::{HashMap, Map, MapData, MapError, RingBuf};
use shunt_dataplane::abi::{ACCEPTED_LIBERAL, AcceptedFlow, FlowKey, QUESTION_TRANSLATION, Question};
use shunt_dataplane::wire::address::{Address, L4Port};
use shunt_netlink::conntrack::{Liberal, Liberator};
use zerocopy::FromBytes as _;

use super::carried::Carrier;
use super::error::WatchError;
use crate::datapath::pins::Pins;

/// How long those that ask wait for each other: while one answer follows another, the programs wake nobody (the ring buffer notifies a reader that has
/// read everything only), which costs them several times what a packet does.
const TOGETHER: Duration = Duration::from_millis(1);

/// Connections that the kernel is told of at a time.
const MOST: usize = 128;

/// How many connections of this namespace are tracked.
const TRACKED: &str = "/proc/sys/net/netfilter/nf_conntrack_count";

/// `BPF_EXIST` (linux/bpf.h): what has ended meanwhile is not made again.
const EXIST: u64 = 2;

/// Reads the programs' questions and answers them.
pub(super) struct Opened {
    ring: RingBuf<MapData>,
    accepted: HashMap<MapData, FlowKey, AcceptedFlow>,
    liberator: Liberator,
    carrier: Carrier,
    /// When the last ones were answered.
    answered: Option<Instant>,
}

impl AsFd for Opened {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ring.as_fd()
    }
}

impl Opened {
    /// Opens the maps by their pins, and a socket in the network namespace of the calling thread.
    ///
    /// # Errors
    /// [`WatchError`].
    pub(super) fn open(pins: &Pins) -> Result<Self, WatchError> {
        let ring = RingBuf::try_from(Map::RingBuf(MapData::from_pin(pins.map("OPENED"))?))?;
        let accepted = HashMap::try_from(Map::LruHashMap(MapData::from_pin(pins.map("ACCEPTED"))?))?;
        let (liberator, carrier) = (Liberator::open()?, Carrier::open(pins)?);
        Ok(Self { ring, accepted, liberator, carrier, answered: None })
    }

    /// Answers a few of those that have been asked by now. What cannot be answered is asked again a lease later.
    pub(super) fn answer(&mut self) {
        if let Some(left) = self.answered.and_then(|last| TOGETHER.checked_sub(last.elapsed())) {
            thread::sleep(left);
        }
        let (translated, bridged): (Vec<_>, Vec<_>) =
            self.asked().into_iter().partition(|asked| asked.wanted == QUESTION_TRANSLATION);
        let connections = translated.len() + bridged.len();
        let [translated, bridged] =
            [translated, bridged].map(|asked| asked.into_iter().map(|asked| asked.flow).collect::<Vec<_>>());
        if let Err(error) = self.liberate(&bridged).and_then(|()| self.carry(&translated)) {
            tracing::debug!(%error, connections, "connection tracking cannot be told of connections: they stay with the kernel");
        }
        self.answered = Some(Instant::now());
    }

    /// The next few connections, each once.
    fn asked(&mut self) -> Vec<Question> {
        let mut asked = Vec::new();
        while asked.len() < MOST
            && let Some(record) = self.ring.next()
        {
            asked.extend(Question::read_from_bytes(&record).ok());
        }
        asked.sort_unstable();
        asked.dedup();
        asked
    }

    /// Has the programs carry connections that the kernel translates.
    fn carry(&mut self, flows: &[FlowKey]) -> Result<(), WatchError> {
        let known: Vec<_> = flows.iter().map(|flow| self.accepted.get(flow, 0).ok()).collect();
        let carried = self.carrier.carry(flows, &mut self.liberator)?;
        for ((flow, known), pair) in flows.iter().zip(known).zip(carried) {
            // One that has ended meanwhile would be carried for ever: nothing of it is to come.
            if let Some(pair) = pair
                && !self.mark(flow, known)?
            {
                self.carrier.forget(&pair)?;
            }
        }
        Ok(())
    }

    fn liberate(&mut self, flows: &[FlowKey]) -> Result<(), WatchError> {
        let known: Vec<_> = flows.iter().map(|flow| self.accepted.get(flow, 0).ok()).collect();
        let ends: Vec<_> = flows.iter().map(ends).collect();
        let became = self.liberator.liberate(&ends)?;
        let mut is_anything_tracked = None;
        for ((flow, known), became) in flows.iter().zip(known).zip(became) {
            let is_unchecked = match became {
                Liberal::Done => true,
                // It may be tracked in another zone, unless nothing is.
                Liberal::Untracked => !*is_anything_tracked.get_or_insert_with(is_anything_tracked_here),
                Liberal::Refused(error) => {
                    tracing::debug!(%error, ?flow, "connection tracking refuses to be liberal");
                    false
                }
            };
            if is_unchecked {
                self.mark(flow, known)?;
            }
        }
        Ok(())
    }

    /// Tells the programs, and returns whether it is still the connection that was `known`: one that has become another of the same ends is asked
    /// for itself. What they write meanwhile is lost: at worst the lease is a little shorter.
    fn mark(&mut self, flow: &FlowKey, known: Option<AcceptedFlow>) -> Result<bool, MapError> {
        let now = match self.accepted.get(flow, 0) {
            Err(MapError::KeyNotFound) => return Ok(false),
            now => now?,
        };
        if !known.is_some_and(|known| is_same_connection(&known, &now)) {
            return Ok(false);
        }
        let marked = AcceptedFlow { flags: now.flags | ACCEPTED_LIBERAL, ..now };
        match self.accepted.insert(flow, marked, EXIST) {
            // It has ended meanwhile.
            Err(MapError::SyscallError(error)) if error.io_error.kind() == io::ErrorKind::NotFound => {
                Ok(false)
            }
            marked => marked.map(|()| true),
        }
    }
}

/// Whether nothing has begun a connection anew between two looks: that forgets what was seen of both directions. A packet renews one at a time.
fn is_same_connection(before: &AcceptedFlow, now: &AcceptedFlow) -> bool {
    before.seen.iter().zip(now.seen).any(|(before, now)| *before != 0 && *before == now)
}

/// Whether connection tracking can be told here. It is told of a connection that cannot be.
pub(in super::super) fn can_be_told() -> bool {
    let nobody = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let said = Liberator::open().and_then(|mut liberator| liberator.liberate(&[(nobody, nobody)]));
    said.is_ok_and(|became| !became.iter().any(|one| matches!(one, Liberal::Refused(_))))
}

/// The two ends of a flow.
fn ends(flow: &FlowKey) -> (SocketAddr, SocketAddr) {
    let end = |address: Address, port: L4Port| SocketAddr::new(address.into(), port.number());
    (end(flow.low, flow.low_port), end(flow.high, flow.high_port))
}

/// Whether connection tracking has any entry in this namespace. Whoever cannot tell may have.
fn is_anything_tracked_here() -> bool {
    fs::read_to_string(TRACKED).map_or(true, |count| count.trim() != "0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_that_began_anew_is_another_one() {
        let seen = |seen: [u64; 2]| AcceptedFlow { seen, ..AcceptedFlow::default() };
        let before = seen([5, 6]);
        assert!(is_same_connection(&before, &before));
        assert!(is_same_connection(&before, &seen([5, 9])), "its answer was let through again");
        assert!(is_same_connection(&seen([5, 0]), &before), "it was asked for before it was written down");
        for now in [[0, 0], [9, 0], [9, 9]] {
            assert!(!is_same_connection(&before, &seen(now)), "{now:?}");
        }
        assert!(!is_same_connection(&seen([5, 0]), &seen([9, 0])));
    }
}

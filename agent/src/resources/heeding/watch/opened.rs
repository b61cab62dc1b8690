//! TCP connections that others' rules have let through (`OPENED`): connection tracking is told not to check their windows any more, and the programs that
//! it does not.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};

use aya::maps::{HashMap, Map, MapData, MapError, RingBuf};
use shunt_dataplane::abi::{ACCEPTED_LIBERAL, AcceptedFlow, FlowKey};
use shunt_dataplane::wire::address::{Address, L4Port};
use shunt_netlink::conntrack::{Liberal, Liberator};
use zerocopy::FromBytes as _;

use super::error::WatchError;
use crate::datapath::pins::Pins;

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
        Ok(Self { ring, accepted, liberator: Liberator::open()? })
    }

    /// Whether connection tracking listens. It is told of a connection that cannot be.
    pub(super) fn can_tell(&mut self) -> bool {
        let nobody = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let said = self.liberator.liberate(&[(nobody, nobody)]);
        said.is_ok_and(|became| !became.iter().any(|one| matches!(one, Liberal::Refused(_))))
    }

    /// Answers what has been asked by now. What cannot be answered is asked again a lease later.
    pub(super) fn answer(&mut self) {
        loop {
            let flows = self.asked();
            if flows.is_empty() {
                return;
            }
            if let Err(error) = self.liberate(&flows) {
                tracing::debug!(%error, connections = flows.len(), "connection tracking cannot be told of connections: they stay with the kernel");
            }
        }
    }

    /// The next few connections, each once.
    fn asked(&mut self) -> Vec<FlowKey> {
        let mut flows = Vec::new();
        while flows.len() < MOST
            && let Some(record) = self.ring.next()
        {
            flows.extend(FlowKey::read_from_bytes(&record).ok());
        }
        flows.sort_unstable();
        flows.dedup();
        flows
    }

    fn liberate(&mut self, flows: &[FlowKey]) -> Result<(), WatchError> {
        let ends: Vec<_> = flows.iter().map(ends).collect();
        let became = self.liberator.liberate(&ends)?;
        let mut is_anything_tracked = None;
        for (flow, became) in flows.iter().zip(became) {
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
                self.mark(flow)?;
            }
        }
        Ok(())
    }

    /// Tells the programs. What they write meanwhile is lost: at worst the lease is a little shorter.
    fn mark(&mut self, flow: &FlowKey) -> Result<(), MapError> {
        let known = match self.accepted.get(flow, 0) {
            Err(MapError::KeyNotFound) => return Ok(()),
            known => known?,
        };
        let marked = AcceptedFlow { flags: known.flags | ACCEPTED_LIBERAL, ..known };
        match self.accepted.insert(flow, marked, EXIST) {
            // It has ended meanwhile.
            Err(MapError::SyscallError(error)) if error.io_error.kind() == io::ErrorKind::NotFound => Ok(()),
            marked => marked,
        }
    }
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

//! Connections of host ports that the kernel has opened, and whose answers others' rules have let through (`OPENED`): connection tracking says what becomes of
//! them, and the programs carry them from then on.

use std::net::SocketAddr;

use aya::maps::{Array, HashMap, Map, MapData, MapError};
use shunt_dataplane::abi::share::{Share, Side};
use shunt_dataplane::abi::translation::{
    Mapping, MappingKey, OUTSIDE, Shown, TRACKED, TRANSLATION_OPENER, Translation, TupleKey, opened_by,
};
use shunt_dataplane::abi::{FlowKey, Station, StationKey};
use shunt_dataplane::wire::Protocol;
use shunt_dataplane::wire::address::{Address, L4Port};
use shunt_netlink::conntrack::{Liberal, Liberator, TrackedConnection, Tracker, Tuple};

use super::error::WatchError;
use crate::datapath::encode::tuple_key;
use crate::datapath::pins::Pins;
use crate::resources::clock::boot_time;
use crate::resources::connection::Entries;
use crate::resources::connection::volumes;

/// How long ago a connection began that connection tracking calls assured, at least, in nanoseconds (`nf_conntrack_udp_packet`,
/// net/netfilter/nf_conntrack_proto_udp.c).
const LASTED: u64 = 2_000_000_000;

/// Finds out what becomes of connections, and writes that down.
pub(super) struct Carrier {
    entries: Entries,
    mappings: HashMap<MapData, MappingKey, Mapping>,
    stations: HashMap<MapData, StationKey, Station>,
    shares: Array<MapData, Share>,
    tracker: Tracker,
}

/// A connection that is asked for: the tuple of its client's packets, and the host port.
#[derive(Clone, Copy, Debug)]
struct Asked {
    request: Tuple,
    mapping: Mapping,
}

impl Carrier {
    /// Opens the maps by their pins, and a socket in the network namespace of the calling thread.
    ///
    /// # Errors
    /// [`WatchError`].
    pub(super) fn open(pins: &Pins) -> Result<Self, WatchError> {
        let pin = |name: &str| MapData::from_pin(pins.map(name));
        Ok(Self {
            entries: Entries::open(|name| pins.map(name))?,
            mappings: HashMap::try_from(Map::HashMap(pin("MAPPINGS")?))?,
            stations: HashMap::try_from(Map::HashMap(pin("FDB")?))?,
            shares: Array::try_from(Map::Array(pin("SHARES")?))?,
            tracker: Tracker::open()?,
        })
    }

    /// Has the programs carry these connections, whose segments `liberator` has connection tracking not check any more. Returns the entries of each one that
    /// they do.
    ///
    /// # Errors
    /// [`WatchError`]: nothing is known of any of them.
    pub(super) fn carry(
        &mut self,
        flows: &[FlowKey],
        liberator: &mut Liberator,
    ) -> Result<Vec<Option<Pair>>, WatchError> {
        let asked: Vec<_> = flows.iter().enumerate().flat_map(|(at, flow)| self.asked(flow, at)).collect();
        let requests: Vec<_> = asked.iter().map(|(_, asked)| asked.request).collect();
        let tracked = self.tracker.find(&requests)?;
        let now = boot_time();
        let pairs = asked.iter().zip(tracked).filter_map(|((at, asked), tracked)| {
            let pair = pair(asked, &tracked?, now)?;
            Some((*at, asked, self.of_container(asked, pair).ok()??))
        });
        let pairs: Vec<_> = pairs.collect();
        let requests: Vec<_> = pairs.iter().map(|(_, asked, _)| asked.request).collect();
        let is_unchecked = unchecked(&requests, liberator)?;
        let mut carried = vec![None; flows.len()];
        for ((at, _, pair), _) in
            pairs.into_iter().zip(is_unchecked).filter(|(_, is_unchecked)| *is_unchecked)
        {
            match self.write(&pair) {
                Ok(()) => carried[at] = Some(pair),
                Err(error) => {
                    tracing::debug!(%error, ?pair, "a connection stays with the kernel");
                    self.forget(&pair)?;
                }
            }
        }
        Ok(carried)
    }

    /// What may be asked for: each end that is a host port has it. Both may have the number of one.
    fn asked(&self, flow: &FlowKey, at: usize) -> Vec<(usize, Asked)> {
        let (low, high) = ((flow.low, flow.low_port), (flow.high, flow.high_port));
        let ways = [(low, high), (high, low)].into_iter();
        let asked = ways.filter_map(|(client, node)| {
            let mapping = self.mapping(node, flow.protocol)?;
            let request = Tuple { protocol: flow.protocol, source: end(client), destination: end(node) };
            Some((at, Asked { request, mapping }))
        });
        asked.collect()
    }

    /// As the programs look it up: of this address, else of any.
    fn mapping(&self, node: (Address, L4Port), protocol: u8) -> Option<Mapping> {
        let [any, own] = volumes::keys(node, protocol);
        [own, any].iter().find_map(|key| self.mappings.get(key, 0).ok())
    }

    /// The entries as those of their container, if it may have one more connection, and has none of the same tuples that the programs have opened: that one
    /// goes on. There is no way by the kernel's bridge for containers in VLANs.
    fn of_container(&self, asked: &Asked, pair: Pair) -> Result<Option<Pair>, MapError> {
        let mapping = &asked.mapping;
        let key = StationKey { bridge: mapping.bridge, vid: mapping.vid, mac: mapping.mac };
        let slot = self.stations.get(&key, 0)?.slot;
        let is_others = |(key, _): &(TupleKey, Translation)| {
            self.entries.get(key).is_ok_and(|known| known.holder != TRACKED)
        };
        if mapping.vid != 0 || !self.shares.get(&slot, 0)?.has_room() || pair.iter().any(is_others) {
            return Ok(None);
        }
        let is_tcp = asked.request.protocol == Protocol::TCP.0;
        let side = if is_tcp { Side::TcpClient } else { Side::DatagramClient };
        let of = |(key, value): (TupleKey, Translation)| {
            (key, Translation { flags: value.flags | opened_by(side, slot), ..value })
        };
        Ok(Some(pair.map(of)))
    }

    /// Writes both directions down.
    fn write(&mut self, pair: &Pair) -> Result<(), MapError> {
        for (key, value) in pair {
            self.entries.remove(key);
            self.entries.assure(key, value)?;
        }
        self.count(pair, 2)
    }

    /// Removes both directions again: the connection has ended meanwhile.
    pub(super) fn forget(&mut self, pair: &Pair) -> Result<(), MapError> {
        let removed = pair.iter().filter(|(key, _)| self.entries.remove(key) != (false, false)).count();
        self.count(pair, -(removed as i64))
    }

    /// Counts entries as the programs do. What they count at the same moment is lost, and is corrected after the next sweep.
    fn count(&mut self, [(_, value), _]: &Pair, entries: i64) -> Result<(), MapError> {
        let share = self.shares.get(&value.slot(), 0)?;
        self.shares.set(value.slot(), Share { assured: share.assured + entries, ..share }, 0)
    }
}

/// The entries of both directions of a connection, the answers' first: by then a request may be answered.
pub(super) type Pair = [(TupleKey, Translation); 2];

/// The entries of both directions. None of a connection that goes elsewhere, that has just begun or begins to end, that another direction's packet has
/// begun, or that the container sees by another name than its client's own: of several clients one may have that name after the other.
fn pair(asked: &Asked, tracked: &TrackedConnection, now: u64) -> Option<Pair> {
    let TrackedConnection { original, reply, is_assured, is_established, .. } = tracked;
    let is_itself = reply.destination == original.source;
    if original != &asked.request || !(*is_assured && *is_established && is_itself) {
        return None;
    }
    let request = tuple_key(OUTSIDE, original);
    let answer = tuple_key(asked.mapping.bridge, reply);
    let becomes = answer.reversed(answer.domain);
    let half = |becomes, flags| Translation {
        becomes,
        shown: Shown::SENT.0,
        touched: now,
        begun: now.saturating_sub(LASTED),
        holder: TRACKED,
        flags,
        ..Translation::default()
    };
    let halves = [(answer, half(request.reversed(OUTSIDE), 0)), (request, half(becomes, TRANSLATION_OPENER))];
    asked.mapping.leads_as(&becomes).then_some(halves)
}

/// Of which of these connections no windows are checked: those of TCP are told of.
fn unchecked(requests: &[Tuple], liberator: &mut Liberator) -> Result<Vec<bool>, WatchError> {
    let is_tcp = |request: &&Tuple| request.protocol == Protocol::TCP.0;
    let ends: Vec<_> =
        requests.iter().filter(is_tcp).map(|request| (request.source, request.destination)).collect();
    let mut became = if ends.is_empty() { Vec::new() } else { liberator.liberate(&ends)? }.into_iter();
    let is_unchecked = |request: &Tuple| {
        !is_tcp(&request) || became.next().is_some_and(|became| matches!(became, Liberal::Done))
    };
    Ok(requests.iter().map(is_unchecked).collect())
}

fn end((address, port): (Address, L4Port)) -> SocketAddr {
    SocketAddr::new(address.into(), port.number())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 9 * LASTED;

    fn asked() -> Asked {
        let container: std::net::IpAddr = "10.0.0.2".parse().unwrap();
        let mapping = Mapping { v4: container.into(), bridge: 7, port: 80.into(), ..Mapping::default() };
        Asked { request: said("192.0.2.9:4000", "192.0.2.1:8080"), mapping }
    }

    fn said(source: &str, destination: &str) -> Tuple {
        Tuple { protocol: 6, source: source.parse().unwrap(), destination: destination.parse().unwrap() }
    }

    fn tracked() -> TrackedConnection {
        let reply = said("10.0.0.2:80", "192.0.2.9:4000");
        TrackedConnection {
            original: asked().request,
            reply,
            is_assured: true,
            is_established: true,
            timeout: 0,
        }
    }

    #[test]
    fn either_direction_finds_the_other_and_both_are_assured() {
        let [(answer, back), (request, there)] = pair(&asked(), &tracked(), NOW).unwrap();
        assert_eq!((answer.domain, request.domain), (7, OUTSIDE));
        assert_eq!(there.becomes.reversed(there.becomes.domain), answer);
        assert_eq!(back.becomes.reversed(back.becomes.domain), request);
        assert!(there.belongs_to(&request, &back) && back.belongs_to(&answer, &there));
        assert!(shunt_dataplane::nat::connection::is_assured(&there, &back, NOW));
    }

    #[test]
    fn what_goes_elsewhere_or_began_elsewhere_stays_with_the_kernel() {
        let young = TrackedConnection { is_assured: false, ..tracked() };
        let closing = TrackedConnection { is_established: false, ..tracked() };
        let elsewhere = TrackedConnection { reply: said("10.0.0.3:80", "192.0.2.9:4000"), ..tracked() };
        let other_port = TrackedConnection { reply: said("10.0.0.2:81", "192.0.2.9:4000"), ..tracked() };
        let hidden = TrackedConnection { reply: said("10.0.0.2:80", "10.0.0.1:4000"), ..tracked() };
        let renumbered = TrackedConnection { reply: said("10.0.0.2:80", "192.0.2.9:4001"), ..tracked() };
        let masqueraded =
            TrackedConnection { original: tracked().reply, reply: asked().request, ..tracked() };
        for stays in [young, closing, elsewhere, other_port, hidden, renumbered, masqueraded] {
            assert!(pair(&asked(), &stays, NOW).is_none(), "{stays:?}");
        }
    }
}

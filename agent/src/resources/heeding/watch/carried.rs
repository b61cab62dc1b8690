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

    /// Has the programs carry these connections, whose segments `liberator` has connection tracking not check any more. Says of each whether they do.
    ///
    /// # Errors
    /// [`WatchError`]: nothing is known of any of them.
    pub(super) fn carry(
        &mut self,
        flows: &[FlowKey],
        liberator: &mut Liberator,
    ) -> Result<Vec<bool>, WatchError> {
        let asked: Vec<_> = flows.iter().map(|flow| self.asked(flow)).collect();
        let known: Vec<Asked> = asked.iter().flatten().copied().collect();
        let requests: Vec<_> = known.iter().map(|asked| asked.request).collect();
        let tracked = self.tracker.find(&requests)?;
        let is_unchecked = unchecked(&requests, liberator)?;
        let mut carried =
            known.iter().zip(tracked).zip(is_unchecked).map(|((asked, tracked), is_unchecked)| {
                let tracked = tracked.filter(|_| is_unchecked)?;
                Some(self.write(asked, &tracked).unwrap_or_else(|error| {
                    tracing::debug!(%error, request = ?asked.request, "a connection stays with the kernel");
                    false
                }))
            });
        Ok(asked
            .iter()
            .map(|asked| asked.is_some() && carried.next().flatten().unwrap_or_default())
            .collect())
    }

    /// What is asked for: that of the two ends which is a host port has it.
    fn asked(&self, flow: &FlowKey) -> Option<Asked> {
        let (low, high) = ((flow.low, flow.low_port), (flow.high, flow.high_port));
        [(low, high), (high, low)].into_iter().find_map(|(client, node)| {
            let mapping = self.mapping(node, flow.protocol)?;
            let request = Tuple { protocol: flow.protocol, source: end(client), destination: end(node) };
            Some(Asked { request, mapping })
        })
    }

    /// As the programs look it up: of this address, else of any.
    fn mapping(&self, node: (Address, L4Port), protocol: u8) -> Option<Mapping> {
        let [any, own] = volumes::keys(node, protocol);
        [own, any].iter().find_map(|key| self.mappings.get(key, 0).ok())
    }

    /// Writes both directions down. Whether they are there: not of a connection that is somebody else's, or that its container may not have.
    fn write(&mut self, asked: &Asked, tracked: &TrackedConnection) -> Result<bool, MapError> {
        let Some(pair) = pair(asked, tracked, boot_time()) else { return Ok(false) };
        let mapping = &asked.mapping;
        let key = StationKey { bridge: mapping.bridge, vid: mapping.vid, mac: mapping.mac };
        let slot = self.stations.get(&key, 0)?.slot;
        if mapping.vid != 0 || !self.shares.get(&slot, 0)?.has_room() {
            return Ok(false);
        }
        // The programs may have opened one of the same tuple, which goes on.
        let is_others = |(key, _): &(TupleKey, Translation)| {
            self.entries.get(key).is_ok_and(|known| known.holder != TRACKED)
        };
        if pair.iter().any(is_others) {
            return Ok(false);
        }
        for (key, value) in &pair {
            let side = if key.protocol == Protocol::TCP.0 { Side::TcpClient } else { Side::DatagramClient };
            let value = Translation { flags: value.flags | opened_by(side, slot), ..*value };
            self.entries.remove(key);
            self.entries.assure(key, &value)?;
        }
        Ok(true)
    }
}

/// The entries of both directions, the answers' first: by then a request may be answered. None of a connection that goes elsewhere, that has just begun, or
/// that another direction's packet has begun.
fn pair(asked: &Asked, tracked: &TrackedConnection, now: u64) -> Option<[(TupleKey, Translation); 2]> {
    let TrackedConnection { original, reply, is_assured } = tracked;
    if original != &asked.request || !is_assured {
        return None;
    }
    let request = tuple(OUTSIDE, original);
    let answer = tuple(asked.mapping.bridge, reply);
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

fn tuple(domain: u32, of: &Tuple) -> TupleKey {
    TupleKey {
        domain,
        source_port: of.source.port().into(),
        destination_port: of.destination.port().into(),
        source: of.source.ip().into(),
        destination: of.destination.ip().into(),
        protocol: of.protocol,
        pad: [0; 3],
    }
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
        let reply = said("10.0.0.2:80", "10.0.0.1:61000");
        TrackedConnection { original: asked().request, reply, is_assured: true }
    }

    #[test]
    fn either_direction_finds_the_other_and_both_are_assured() {
        let [(answer, back), (request, there)] = pair(&asked(), &tracked(), NOW).unwrap();
        assert_eq!((answer.domain, request.domain), (7, OUTSIDE));
        assert_eq!(there.becomes.reversed(there.becomes.domain), answer);
        assert_eq!(back.becomes.reversed(back.becomes.domain), request);
        assert_eq!(there.becomes.source_port.number(), 61_000, "as the container sees it");
        assert!(there.belongs_to(&request, &back) && back.belongs_to(&answer, &there));
        assert!(shunt_dataplane::nat::connection::is_assured(&there, &back, NOW));
    }

    #[test]
    fn what_goes_elsewhere_or_began_elsewhere_stays_with_the_kernel() {
        let young = TrackedConnection { is_assured: false, ..tracked() };
        let elsewhere = TrackedConnection { reply: said("10.0.0.3:80", "10.0.0.1:61000"), ..tracked() };
        let other_port = TrackedConnection { reply: said("10.0.0.2:81", "10.0.0.1:61000"), ..tracked() };
        let masqueraded =
            TrackedConnection { original: tracked().reply, reply: asked().request, ..tracked() };
        for stays in [young, elsewhere, other_port, masqueraded] {
            assert!(pair(&asked(), &stays, NOW).is_none(), "{stays:?}");
        }
    }
}

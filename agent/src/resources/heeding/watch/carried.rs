//! Connections that the kernel has opened and translates, and that others' rules have let through (`OPENED`): connection tracking says what becomes of them, and
//! the programs carry them from then on.

use std::net::SocketAddr;

use aya::maps::{Array, HashMap, Map, MapData, MapError};
use shunt_dataplane::abi::share::{Share, Side};
use shunt_dataplane::abi::translation::{
    Mapping, MappingKey, OUTSIDE, Translation, TupleKey, is_tracked, opened_by,
};
use shunt_dataplane::abi::{AddressKey, FlowKey, Owner, Port, PortKey, Station, StationKey};
use shunt_dataplane::wire::Protocol;
use shunt_dataplane::wire::address::{Address, L4Port};
use shunt_netlink::conntrack::{Liberal, Liberator, TrackedConnection, Tracker, Tuple};

use super::error::WatchError;
use super::pair::{self, Pair};
use crate::datapath::pins::Pins;
use crate::resources::clock::boot_time;
use crate::resources::connection::Entries;
use crate::resources::connection::volumes;

/// Finds out what becomes of connections, and writes that down.
pub(super) struct Carrier {
    entries: Entries,
    mappings: HashMap<MapData, MappingKey, Mapping>,
    addresses: HashMap<MapData, AddressKey, Owner>,
    ports: HashMap<MapData, PortKey, Port>,
    stations: HashMap<MapData, StationKey, Station>,
    shares: Array<MapData, Share>,
    tracker: Tracker,
}

/// A connection that is asked about: a tuple by which connection tracking knows it.
#[derive(Clone, Copy, Debug)]
struct Asked {
    tuple: Tuple,
    of: Of,
}

/// Who is asked for.
#[derive(Clone, Copy, Debug)]
enum Of {
    /// The host port to which the tuple's packets come.
    HostPort(Mapping),
    /// The container that sends the tuple's packets, on this bridge: to whom it asks, or to the client of a host port.
    Container(u32, Port),
}

/// What becomes of a connection.
#[derive(Debug)]
struct Translated {
    original: Tuple,
    pair: Pair,
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
            addresses: HashMap::try_from(Map::HashMap(pin("ADDRESSES")?))?,
            ports: HashMap::try_from(Map::HashMap(pin("PORTS")?))?,
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
        let tuples: Vec<_> = asked.iter().map(|(_, asked)| asked.tuple).collect();
        let tracked = self.tracker.find(&tuples)?;
        let now = boot_time();
        let translated = asked.iter().zip(tracked).filter_map(|((at, asked), tracked)| {
            let translated = self.translated(asked, &tracked?, now)?;
            (!self.is_others(&translated.pair)).then_some((*at, translated))
        });
        let translated: Vec<_> = translated.collect();
        let originals: Vec<_> = translated.iter().map(|(_, translated)| translated.original).collect();
        let is_unchecked = unchecked(&originals, liberator)?;
        let mut carried = vec![None; flows.len()];
        for ((at, Translated { pair, .. }), _) in
            translated.into_iter().zip(is_unchecked).filter(|(_, is_unchecked)| *is_unchecked)
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

    /// What may be asked for: outside each end that is a host port has it, and both may have the number of one; on a bridge each end that is a container's.
    fn asked(&self, flow: &FlowKey, at: usize) -> Vec<(usize, Asked)> {
        let (low, high) = ((flow.low, flow.low_port), (flow.high, flow.high_port));
        let ways = [(low, high), (high, low)].into_iter();
        let asked = ways.filter_map(|(from, to)| {
            let of = if flow.bridge == OUTSIDE {
                Of::HostPort(self.mapping(to, flow.protocol)?)
            } else {
                Of::Container(flow.bridge, self.port_of(flow.bridge, from.0)?)
            };
            let tuple = Tuple { protocol: flow.protocol, source: end(from), destination: end(to) };
            Some((at, Asked { tuple, of }))
        });
        asked.collect()
    }

    /// The entries of a connection that connection tracking has, as those of their container, if it may have one more. There is no way by the kernel's bridge
    /// for containers in VLANs.
    fn translated(&self, asked: &Asked, tracked: &TrackedConnection, now: u64) -> Option<Translated> {
        let Asked { tuple, of } = asked;
        let original = tracked.original;
        let (pair, side, slot) = match of {
            Of::Container(bridge, port) if original == *tuple => {
                (pair::masqueraded(*bridge, tracked, now)?, Side::Own, port.slot)
            }
            Of::Container(_, port) if tracked.reply == *tuple => {
                let node = (original.destination.ip().into(), original.destination.port().into());
                let mapping = self.mapping(node, original.protocol)?;
                (pair::of_host_port(&mapping, tracked, now)?, side_of_client(&original), port.slot)
            }
            Of::HostPort(mapping) if original == *tuple => {
                let key = StationKey { bridge: mapping.bridge, vid: mapping.vid, mac: mapping.mac };
                let slot = self.stations.get(&key, 0).ok().filter(|_| mapping.vid == 0)?.slot;
                (pair::of_host_port(mapping, tracked, now)?, side_of_client(&original), slot)
            }
            _ => return None,
        };
        if !self.shares.get(&slot, 0).ok()?.has_room() {
            return None;
        }
        let of_container = |(key, value): (TupleKey, Translation)| {
            (key, Translation { flags: value.flags | opened_by(side, slot), ..value })
        };
        Some(Translated { original, pair: pair.map(of_container) })
    }

    /// Whether the programs have opened one of the same tuples: that one goes on.
    fn is_others(&self, pair: &Pair) -> bool {
        pair.iter().any(|(key, _)| self.entries.get(key).is_ok_and(|known| !is_tracked(known.holder)))
    }

    /// As the programs look it up: of this address, else of any.
    fn mapping(&self, node: (Address, L4Port), protocol: u8) -> Option<Mapping> {
        let [any, own] = volumes::keys(node, protocol);
        [own, any].iter().find_map(|key| self.mappings.get(key, 0).ok())
    }

    /// The port of the container that has an address on a bridge, in no VLAN.
    fn port_of(&self, bridge: u32, address: Address) -> Option<Port> {
        let Owner { ifindex } = self.addresses.get(&AddressKey::new(bridge, 0, address), 0).ok()?;
        self.ports.get(&PortKey { ifindex }, 0).ok()
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

fn side_of_client(request: &Tuple) -> Side {
    if request.protocol == Protocol::TCP.0 { Side::TcpClient } else { Side::DatagramClient }
}

/// Of which of these connections no windows are checked: those of TCP are told of.
fn unchecked(originals: &[Tuple], liberator: &mut Liberator) -> Result<Vec<bool>, WatchError> {
    let is_tcp = |original: &&Tuple| original.protocol == Protocol::TCP.0;
    let ends: Vec<_> =
        originals.iter().filter(is_tcp).map(|original| (original.source, original.destination)).collect();
    let mut became = if ends.is_empty() { Vec::new() } else { liberator.liberate(&ends)? }.into_iter();
    let is_unchecked = |original: &Tuple| {
        !is_tcp(&original) || became.next().is_some_and(|became| matches!(became, Liberal::Done))
    };
    Ok(originals.iter().map(is_unchecked).collect())
}

fn end((address, port): (Address, L4Port)) -> SocketAddr {
    SocketAddr::new(address.into(), port.number())
}

//! Reports translated connections, and removes the entries of closed ones.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self};
use std::time::Duration;

use aya::maps::{HashMap as BpfHashMap, Map, MapData, MapError, MapInfo, PerCpuArray};
use shunt_dataplane::abi::translation::{Mapping, MappingKey, Translation, TupleKey};
use shunt_dataplane::abi::{AddressKey, NO_OWNER, Owner};

use super::pairs::{self, Connection, Evictions, Flows};
use super::state::lock;
use super::table::open;
use super::volumes::{self, HostPortCounters, Place, Volumes};
use crate::datapath::room::MOST_ENTRIES;
use crate::failpoints;
use crate::resources::Node;
use crate::resources::clock::boot_time;

/// The percentage in use that counts as full: the kernel evicts before the last entry is used.
const FULL: u32 = 90;

/// Period of the sweep.
const PERIOD: Duration = Duration::from_secs(10);

impl Node {
    /// A host port was removed: the next tick sweeps its connections.
    pub(crate) fn sweep_flows_soon(&mut self) {
        (self.sweeping.last, self.sweeping.leftovers) = (None, true);
    }

    /// Starts a sweep if one is due and none is running.
    pub(crate) fn sweep_flows(&mut self) {
        let is_due = self.sweeping.last.is_none_or(|last| failpoints::now().duration_since(last) > PERIOD);
        let is_translated = self.is_mapped() || self.is_masqueraded();
        if !(is_due && (is_translated || self.sweeping.leftovers)) {
            return;
        }
        if self.sweeping.thread.as_ref().is_some_and(|thread| !thread.is_finished()) {
            return;
        }
        // One more sweep after the last host port was removed.
        (self.sweeping.last, self.sweeping.leftovers) = (Some(failpoints::now()), is_translated);
        let pins = ["FLOWS", "MAPPINGS", "FLOWS_MADE", "ADDRESSES"].map(|name| self.datapath.map_pin(name));
        let (in_use, evictions) = (Arc::clone(&self.sweeping.in_use), Arc::clone(&self.sweeping.evictions));
        let counters = Arc::clone(&self.sweeping.counters);
        let sweep = move || match sweep(&pins, &in_use, &evictions, &counters) {
            Ok(0) => {}
            Ok(swept) => tracing::debug!(swept, "removed the entries of closed connections"),
            Err(error) => tracing::warn!(%error, "cannot remove the entries of closed connections"),
        };
        match thread::Builder::new().name("sweep".into()).spawn(sweep) {
            Ok(thread) => self.sweeping.thread = Some(thread),
            Err(error) => tracing::warn!(%error, "cannot remove the entries of closed connections"),
        }
    }

    /// The warning about a full map, which evicts the least recently used connections.
    pub(crate) fn flows_are_full(&self) -> Option<String> {
        let in_use = self.sweeping.in_use.load(Ordering::Relaxed);
        (in_use >= FULL).then(|| {
            format!(
                "{in_use}% of the room for translated connections is in use: the least recently used are forgotten, \
                 {} entries so far; see max_flows",
                self.flow_evictions()
            )
        })
    }

    /// Evicted entries, as counted by the sweeps.
    pub(crate) fn flow_evictions(&self) -> u64 {
        lock(&self.sweeping.evictions).counted()
    }
}

/// The maps that say which connections live.
struct Maps {
    flows: BpfHashMap<MapData, TupleKey, Translation>,
    mappings: BpfHashMap<MapData, MappingKey, Mapping>,
    addresses: BpfHashMap<MapData, AddressKey, Owner>,
}

/// Removes the entries of closed connections. Returns their number.
fn sweep(
    [flows, mappings, made, addresses]: &[PathBuf; 4],
    in_use: &AtomicU32,
    evictions: &Mutex<Evictions>,
    counters: &Mutex<HostPortCounters>,
) -> Result<usize, MapError> {
    let mut maps = Maps {
        flows: open(flows, Map::LruHashMap)?,
        mappings: open(mappings, Map::HashMap)?,
        addresses: open(addresses, Map::HashMap)?,
    };
    let made: PerCpuArray<MapData, u64> = PerCpuArray::try_from(Map::PerCpuArray(MapData::from_pin(made)?))?;
    // Read before the walk: entries that are added meanwhile are found but not expected, so that none counts
    // as evicted.
    let made = made.get(&0, 0)?.iter().fold(0, |sum: u64, cpu| sum.wrapping_add(*cpu));
    let found = read(&maps.flows)?;
    lock(evictions).see(made, found.len() as u64);
    let entries = u64::from(MapInfo::from_pin(flows)?.max_entries()).max(1);
    in_use.store((found.len() as u64 * 100 / entries) as u32, Ordering::Relaxed);
    let stale = pairs::stale(&found, boot_time(), |connection| maps.has_its_way(connection));
    let swept = maps.remove(&stale, &found, counters);
    lock(evictions).remove(swept as u64);
    lock(counters).retain(|place| maps.leads_to(place));
    Ok(swept)
}

impl Maps {
    /// Whether a connection's host port, or its masqueraded container, is still there.
    fn has_its_way(&self, connection: &Connection) -> bool {
        let (request, becomes) = (connection.request, connection.opener.becomes);
        if connection.is_masqueraded() {
            let key = AddressKey::new(request.domain, 0, request.source);
            // An address that somebody else has announced may be the container's again.
            let holders = [connection.opener.holder, NO_OWNER];
            return self.addresses.get(&key, 0).is_ok_and(|owner| holders.contains(&owner.ifindex));
        }
        let leads_there = |key: &MappingKey| {
            self.mappings.get(key, 0).is_ok_and(|mapping| {
                mapping.bridge == becomes.domain
                    && mapping.port == becomes.destination_port
                    && [mapping.v4, mapping.v6].contains(&becomes.destination)
            })
        };
        let asked = (request.destination, request.destination_port);
        volumes::keys(asked, request.protocol).iter().any(leads_there)
    }

    /// Whether a host port leads to a container.
    fn leads_to(&self, (key, container): &Place) -> bool {
        self.mappings.get(key, 0).is_ok_and(|mapping| [mapping.v4, mapping.v6].contains(container))
    }

    /// Removes entries, and keeps their volumes. One may have been evicted or replaced meanwhile; a connection that starts between
    /// look-up and removal is recreated by its next packet.
    fn remove(&mut self, stale: &[TupleKey], found: &Flows, counters: &Mutex<HostPortCounters>) -> usize {
        let mut swept = 0;
        for key in stale {
            let Ok(flow) = self.flows.get(key, 0) else { continue };
            let is_same = found.get(key).is_some_and(|old| old.begun == flow.begun);
            if !is_same || self.flows.remove(key).is_err() {
                continue;
            }
            swept += 1;
            let place = volumes::place(key, &flow, |own| self.mappings.get(own, 0).is_ok());
            if let Some(place) = place.filter(|place| self.leads_to(place)) {
                lock(counters).sweep(place, Volumes::of(&flow));
            }
        }
        swept
    }
}

/// All entries. A removed entry restarts the kernel's walk, so the number of steps is limited.
fn read(map: &BpfHashMap<MapData, TupleKey, Translation>) -> Result<Flows, MapError> {
    let mut found = Flows::new();
    for entry in map.iter().take(2 * MOST_ENTRIES as usize) {
        match entry {
            Ok((key, flow)) => _ = found.insert(key, flow),
            Err(MapError::KeyNotFound) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

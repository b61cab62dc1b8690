//! Reports translated connections, and removes the entries of closed ones, and of closed sockets of the node.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::thread::{self};
use std::time::Duration;

use aya::maps::{HashMap as BpfHashMap, Map, MapData, MapError, MapInfo, PerCpuArray};
use shunt_dataplane::abi::translation::{
    Mapping, MappingKey, NODE, TRACKED_MASQUERADED, Translation, TupleKey, is_tracked,
};
use shunt_dataplane::abi::{AcceptedFlow, AddressKey, End, FlowKey, NO_OWNER, Owner};

use super::entries::{Entries, open};
use super::pairs::{self, Connection, Flows};
use super::shares::Shares;
use super::state::{Shared, lock};
use super::tracked;
use super::volumes::{self, HostPortCounters, Place, Volumes};
use crate::failpoints;
use crate::registry::Attachment;
use crate::resources::Node;
use crate::resources::clock::boot_time;
use crate::resources::host_port::connected_peers::{self, CONNECTED_PEERS};

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
        let is_translated = self.is_mapped() || self.is_masqueraded_by_programs();
        if !(is_due && (is_translated || self.sweeping.leftovers)) {
            return;
        }
        if self.sweeping.thread.as_ref().is_some_and(|thread| !thread.is_finished()) {
            return;
        }
        // One more sweep after the last host port was removed.
        (self.sweeping.last, self.sweeping.leftovers) = (Some(failpoints::now()), is_translated);
        self.sweeping.begun += 1;
        let (number, shared) = (self.sweeping.begun, self.sweeping.shared.clone());
        let slots: Vec<u32> = self.registry.attachments().map(|attachment| attachment.slot).collect();
        let pins = self.datapath.pins();
        let sweep = move || {
            match sweep(|name| pins.map(name), &slots, number, &shared) {
                Ok(0) => {}
                Ok(swept) => tracing::debug!(swept, "removed the entries of closed connections"),
                Err(error) => tracing::warn!(%error, "cannot remove the entries of closed connections"),
            }
            match connected_peers::sweep(&pins.map(CONNECTED_PEERS), &mut lock(&shared.unfound)) {
                Ok(0) => {}
                Ok(swept) => tracing::debug!(swept, "removed the peers of closed UDP sockets"),
                Err(error) => tracing::warn!(%error, "cannot remove the peers of closed UDP sockets"),
            }
        };
        match thread::Builder::new().name("sweep".into()).spawn(sweep) {
            Ok(thread) => self.sweeping.thread = Some(thread),
            Err(error) => tracing::warn!(%error, "cannot remove the entries of closed connections"),
        }
    }

    /// How much of the room for translated connections is in use, in percent, as the last sweep found it.
    pub(crate) fn flows_in_use(&self) -> u32 {
        self.sweeping.shared.in_use.load(Ordering::Relaxed)
    }

    /// The warning about a full map, which takes no more connections.
    pub(crate) fn flows_are_full(&self) -> Option<String> {
        let in_use = self.flows_in_use();
        (in_use >= FULL).then(|| {
            format!(
                "{in_use}% of the room for translated connections is in use: new ones make room for each other where there is none; \
                 see max_flows"
            )
        })
    }

    /// The warnings about containers that have all the connections that they may have.
    pub(crate) fn shares_are_used(&self) -> Vec<String> {
        let full = lock(&self.sweeping.shared.full);
        let of = |attachment: &&Attachment| full.contains(&attachment.slot);
        let used = self.registry.attachments().filter(of);
        used.map(|attachment| {
            format!(
                "{} has all of the {} translated connections that one container may have: more are masqueraded by the kernel, and by its \
                 host ports refused; see max_flows_per_container",
                attachment.port.key, self.datapath.share().most / 2
            )
        })
        .collect()
    }

    /// Evicted entries, as counted by the sweeps.
    pub(crate) fn flow_evictions(&self) -> u64 {
        lock(&self.sweeping.shared.evictions).counted()
    }
}

/// The flow of a tuple, whichever direction it is.
fn flow_of(key: &TupleKey) -> FlowKey {
    let source = End { address: key.source, port: key.source_port };
    let destination = End { address: key.destination, port: key.destination_port };
    FlowKey::of(key.domain, key.protocol, source, destination)
}

/// The maps that say which connections live.
struct Maps {
    entries: Entries,
    mappings: BpfHashMap<MapData, MappingKey, Mapping>,
    addresses: BpfHashMap<MapData, AddressKey, Owner>,
    accepted: BpfHashMap<MapData, FlowKey, AcceptedFlow>,
}

/// Removes the entries of closed connections. Returns how many. `number` is the sweep's.
fn sweep(
    pin: impl Fn(&str) -> PathBuf,
    slots: &[u32],
    number: u64,
    shared: &Shared,
) -> Result<usize, MapError> {
    let Shared { in_use, evictions, counters, .. } = shared;
    let mut maps = Maps {
        entries: Entries::open(&pin)?,
        mappings: open(&pin("MAPPINGS"), Map::HashMap)?,
        addresses: open(&pin("ADDRESSES"), Map::HashMap)?,
        accepted: open(&pin("ACCEPTED"), Map::LruHashMap)?,
    };
    let made = Map::PerCpuArray(MapData::from_pin(pin("FLOWS_MADE"))?);
    let made: PerCpuArray<MapData, u64> = PerCpuArray::try_from(made)?;
    let mut shares = Shares::open(&pin("SHARES"), slots)?;
    // Read before the walk: entries that are added meanwhile are found but not expected, so that none counts
    // as evicted.
    let made = made.get(&0, 0)?.iter().fold(0, |sum: u64, cpu| sum.wrapping_add(*cpu));
    let found = maps.entries.read()?;
    lock(evictions).see(made, found.flows.len() as u64);
    let room = u64::from(MapInfo::from_pin(pin("ASSURED"))?.max_entries()).max(1);
    in_use.store((found.assured.len() as u64 * 100 / room) as u32, Ordering::Relaxed);
    shares.correct(&found.assured)?;
    let (all, now) = (found.all(), boot_time());
    let mut stale = pairs::stale(&all, now, |connection| maps.has_its_way(connection));
    stale.extend(tracked::gone(&all));
    if !pairs::has_masqueraded(&all, &stale) {
        shared.without_masqueraded.store(number, Ordering::Relaxed);
    }
    stale.extend(shares.too_many(&found.assured, now)?);
    let removed = maps.remove(&stale, &all, counters);
    lock(evictions).remove(removed.flows);
    shares.remove(&removed.assured)?;
    *lock(&shared.full) = shares.full()?;
    lock(counters).retain(|place| maps.leads_to(place));
    Ok(removed.entries)
}

impl Maps {
    /// Whether a connection's host port, or its masqueraded container, is still there.
    fn has_its_way(&self, connection: &Connection) -> bool {
        let (request, becomes) = (connection.request, connection.opener.becomes);
        if connection.opener.holder == NODE {
            return true;
        }
        if connection.is_masqueraded() {
            let key = AddressKey::new(request.domain, 0, request.source);
            let holder = connection.opener.holder;
            // An address that somebody else has announced may be the container's again.
            let is_holders = |owner: Owner| [holder, NO_OWNER].contains(&owner.ifindex);
            let owner = self.addresses.get(&key, 0);
            return owner.is_ok_and(|owner| holder == TRACKED_MASQUERADED || is_holders(owner));
        }
        let leads_there =
            |key: &MappingKey| self.mappings.get(key, 0).is_ok_and(|mapping| mapping.leads_as(&becomes));
        let asked = (request.destination, request.destination_port);
        volumes::keys(asked, request.protocol).iter().any(leads_there)
    }

    /// Whether a host port leads to a container.
    fn leads_to(&self, (key, container): &Place) -> bool {
        self.mappings.get(key, 0).is_ok_and(|mapping| [mapping.v4, mapping.v6].contains(container))
    }

    /// Removes entries, and keeps their volumes. One may have been evicted or replaced meanwhile; a connection that starts between
    /// look-up and removal is recreated by its next packet.
    fn remove(&mut self, stale: &[TupleKey], found: &Flows, counters: &Mutex<HostPortCounters>) -> Removed {
        let mut removed = Removed::default();
        for key in stale {
            let Ok(flow) = self.entries.get(key) else { continue };
            // One that is used again meanwhile stays, unless it is the kernel's anyway.
            let is_used = |old: &Translation| old.touched != flow.touched && !is_tracked(flow.holder);
            if found.get(key).is_none_or(|old| old.begun != flow.begun || is_used(old)) {
                continue;
            }
            let (was_assured, was_copied) = self.entries.remove(key);
            if !(was_assured || was_copied) {
                continue;
            }
            if is_tracked(flow.holder) {
                // It is asked for again, should it go on.
                let _ = self.accepted.remove(&flow_of(key));
            }
            removed.entries += 1;
            removed.flows += u64::from(was_copied);
            if was_assured {
                *removed.assured.entry(flow.slot()).or_default() += 1;
            }
            let place = volumes::place(key, &flow, |own| self.mappings.get(own, 0).is_ok());
            if let Some(place) = place.filter(|place| self.leads_to(place)) {
                lock(counters).sweep(place, Volumes::of(&flow));
            }
        }
        removed
    }
}

/// What a sweep has removed.
#[derive(Default)]
struct Removed {
    entries: usize,
    /// Those of `FLOWS`.
    flows: u64,
    /// Those of `ASSURED`, by counter slot.
    assured: HashMap<u32, i64>,
}

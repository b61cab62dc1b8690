//! Reports translated connections, and removes the entries of closed ones.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use aya::Pod;
use aya::maps::{HashMap as BpfHashMap, Map, MapData, MapError, MapInfo, PerCpuArray};
use nix::time::{ClockId, clock_gettime};
use shunt_agent_api::{FlowEnds, FlowProtocol, FlowReport, MappingReport};
use shunt_dataplane::abi::translation::{Mapping, MappingKey, Translation, TupleKey};
use shunt_dataplane::abi::{AddressKey, Owner};
use shunt_dataplane::nat::connection::Phase;
use shunt_dataplane::wire::Protocol;
use shunt_dataplane::wire::address::Address;

use super::{Agent, Refusal};
use crate::bpf::room::MOST_ENTRIES;
use crate::failpoints;
use crate::flows::{self, Connection, Evictions, Flows};
use crate::host_port_counters::{self, HostPortCounters, Place, Volumes};
use crate::kernel::{KernelError, mappings};

/// The percentage in use that counts as full: the kernel evicts before the last entry is used.
const FULL: u32 = 90;

/// Period of the sweep.
const PERIOD: Duration = Duration::from_secs(10);

/// The sweep of `FLOWS`, in the background: a full map takes longer than an ADD may wait.
#[derive(Debug, Default)]
pub(super) struct Sweeping {
    last: Option<Instant>,
    thread: Option<JoinHandle<()>>,
    /// Whether entries may be left although no host port exists.
    leftovers: bool,
    /// The percentage of the map in use, as of the last sweep.
    in_use: Arc<AtomicU32>,
    evictions: Arc<Mutex<Evictions>>,
    counters: Arc<Mutex<HostPortCounters>>,
}

impl Agent {
    /// A host port was removed: the next tick sweeps its connections.
    pub(super) fn sweep_flows_soon(&mut self) {
        (self.sweeping.last, self.sweeping.leftovers) = (None, true);
    }

    /// Starts a sweep if one is due and none is running.
    pub(super) fn sweep_flows(&mut self) {
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
        let pins = ["FLOWS", "MAPPINGS", "FLOWS_MADE", "ADDRESSES"].map(|name| self.kernel.map_pin(name));
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
    pub(super) fn flows_are_full(&self) -> Option<String> {
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
    pub(super) fn flow_evictions(&self) -> u64 {
        lock(&self.sweeping.evictions).counted()
    }

    /// A [`FlowReport`] per translated connection.
    ///
    /// # Errors
    /// The map cannot be read.
    pub fn flows(&self) -> Result<Vec<FlowReport>, Refusal> {
        let flows = self.read_flows()?;
        let now = boot_time();
        let mut reports: Vec<_> =
            flows::connections(&flows).map(|connection| flow_report(&connection, now)).collect();
        reports.sort_by(|one, other| {
            (one.dport, one.src, one.sport).cmp(&(other.dport, other.src, other.sport))
        });
        Ok(reports)
    }

    /// A [`MappingReport`] per host port, in the order of the attachments.
    ///
    /// # Errors
    /// The map cannot be read.
    pub fn mapping_reports(&self) -> Result<Vec<MappingReport>, Refusal> {
        let mut volumes = lock(&self.sweeping.counters).swept();
        let flows = self.read_flows()?;
        let known: HashSet<_> = self
            .registry
            .attachments()
            .flat_map(|attachment| attachment.mapping_entries().into_keys())
            .collect();
        let place = |key, flow| host_port_counters::place(key, flow, |own| known.contains(own));
        for (key, flow) in &flows {
            if let Some(place) = place(key, flow) {
                *volumes.entry(place).or_default() += Volumes::of(flow);
            }
        }
        let mut counts: HashMap<Place, u64> = HashMap::new();
        for connection in flows::connections(&flows) {
            if let Some(place) = place(connection.request, connection.opener) {
                *counts.entry(place).or_default() += 1;
            }
        }
        let mut counters = lock(&self.sweeping.counters);
        let mut reports = Vec::new();
        for attachment in self.registry.attachments() {
            for mapping in &attachment.port.mappings {
                let ips: Vec<_> = attachment.mapped_ips(mapping).collect();
                let places = ips.iter().map(|ip| (mappings::key(mapping, *ip), Address::from(*ip)));
                let (mut volume, mut connections) = (Volumes::default(), 0);
                for place in places {
                    volume += counters.tell(place, volumes.get(&place).copied().unwrap_or_default());
                    connections += counts.get(&place).copied().unwrap_or_default();
                }
                reports.push(MappingReport {
                    proto: mapping.protocol,
                    host_ip: mapping.host_ip,
                    host_port: mapping.host_port,
                    network: attachment.port.key.network.clone(),
                    container: attachment.port.key.container.clone(),
                    ifname: attachment.port.key.ifname.clone(),
                    container_ips: ips,
                    container_port: mapping.container_port,
                    connections,
                    from: volume.from,
                    to: volume.to,
                });
            }
        }
        Ok(reports)
    }

    fn read_flows(&self) -> Result<Flows, Refusal> {
        read(&self.kernel.maps.flows)
            .map_err(|source| Refusal::Kernel(KernelError::Map { map: "FLOWS", source }))
    }
}

/// Removes the entries of closed connections. Returns their number.
fn sweep(
    [flows, mappings, made, addresses]: &[PathBuf; 4],
    in_use: &AtomicU32,
    evictions: &Mutex<Evictions>,
    counters: &Mutex<HostPortCounters>,
) -> Result<usize, MapError> {
    let mut map = open::<TupleKey, Translation>(flows, Map::LruHashMap)?;
    let mappings = open::<MappingKey, Mapping>(mappings, Map::HashMap)?;
    let addresses = open::<AddressKey, Owner>(addresses, Map::HashMap)?;
    let made: PerCpuArray<MapData, u64> = PerCpuArray::try_from(Map::PerCpuArray(MapData::from_pin(made)?))?;
    // Read before the walk: entries that are added meanwhile are found but not expected, so that none counts
    // as evicted.
    let made = made.get(&0, 0)?.iter().fold(0, |sum: u64, cpu| sum.wrapping_add(*cpu));
    let found = read(&map)?;
    lock(evictions).see(made, found.len() as u64);
    let entries = u64::from(MapInfo::from_pin(flows)?.max_entries()).max(1);
    in_use.store((found.len() as u64 * 100 / entries) as u32, Ordering::Relaxed);
    let is_mapped = |connection: &Connection<'_>| {
        let becomes = connection.opener.becomes;
        let leads_there = |key: &MappingKey| {
            mappings.get(key, 0).is_ok_and(|mapping| {
                mapping.bridge == becomes.domain
                    && mapping.port == becomes.destination_port
                    && [mapping.v4, mapping.v6].contains(&becomes.destination)
            })
        };
        if connection.is_masqueraded() {
            let key = AddressKey::new(connection.request.domain, 0, connection.request.source);
            return addresses.get(&key, 0).is_ok_and(|owner| owner.ifindex == connection.opener.holder);
        }
        let asked = (connection.request.destination, connection.request.destination_port);
        host_port_counters::keys(asked, connection.request.protocol).iter().any(leads_there)
    };
    let stale = flows::stale(&found, boot_time(), is_mapped);
    // The entry may have been evicted or replaced meanwhile; a connection that starts between lookup and
    // removal is recreated by its next packet.
    let mut swept = 0;
    let leads_there = |(key, container): &Place| {
        mappings.get(key, 0).is_ok_and(|mapping| [mapping.v4, mapping.v6].contains(container))
    };
    for key in &stale {
        let Ok(flow) = map.get(key, 0) else { continue };
        let is_same = found.get(key).is_some_and(|old| old.begun == flow.begun);
        if !is_same || map.remove(key).is_err() {
            continue;
        }
        swept += 1;
        let place = host_port_counters::place(key, &flow, |own| mappings.get(own, 0).is_ok());
        if let Some(place) = place.filter(leads_there) {
            lock(counters).sweep(place, Volumes::of(&flow));
        }
    }
    lock(evictions).remove(swept as u64);
    lock(counters).retain(leads_there);
    Ok(swept)
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

fn open<K: Pod, V: Pod>(pin: &Path, kind: fn(MapData) -> Map) -> Result<BpfHashMap<MapData, K, V>, MapError> {
    BpfHashMap::try_from(kind(MapData::from_pin(pin)?))
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

fn flow_report(connection: &Connection<'_>, now: u64) -> FlowReport {
    let Connection { request, opener, answerer } = connection;
    let ends = |tuple: &TupleKey| FlowEnds {
        src: ip(tuple.source),
        sport: tuple.source_port.number(),
        dst: ip(tuple.destination),
        dport: tuple.destination_port.number(),
    };
    FlowReport {
        proto: match Protocol(request.protocol) {
            Protocol::UDP => FlowProtocol::Udp,
            Protocol::SCTP => FlowProtocol::Sctp,
            Protocol::ICMP => FlowProtocol::Icmp,
            Protocol::ICMPV6 => FlowProtocol::Icmpv6,
            _ => FlowProtocol::Tcp,
        },
        src: ip(request.source),
        sport: request.source_port.number(),
        dst: ip(request.destination),
        dport: request.destination_port.number(),
        translated: ends(&opener.becomes),
        state: match connection.phase() {
            Phase::Opening => "opening",
            Phase::Established => "established",
            Phase::Closing => "closing",
            Phase::Closed => "closed",
            Phase::Reset => "reset",
        }
        .to_owned(),
        expires_seconds: connection.remaining(now).as_secs(),
        packets: opener.packets + answerer.packets,
        bytes: opener.bytes + answerer.bytes,
    }
}

fn ip(address: Address) -> IpAddr {
    IpAddr::from(address.octets()).to_canonical()
}

/// The clock of the programs.
pub(super) fn boot_time() -> u64 {
    clock_gettime(ClockId::CLOCK_BOOTTIME)
        .map(|now| now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64)
        .unwrap_or_default()
}

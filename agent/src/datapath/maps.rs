//! The typed maps.

use std::collections::BTreeMap;
use std::sync::Arc;

use aya::maps::lpm_trie::{Key, LpmTrie};
use aya::maps::{
    Array, DevMapHash, HashMap, Map, MapData, MapError, PerCpuArray, PerCpuHashMap, PerCpuValues,
};
use aya::{Ebpf, Pod};
use shunt_dataplane::DropReason;
use shunt_dataplane::abi::fragment::{FragmentKey, FragmentTranslation};
use shunt_dataplane::abi::learning::{Learned, Learning};
use shunt_dataplane::abi::policer::{Policer, SubnetKey};
use shunt_dataplane::abi::share::Share;
use shunt_dataplane::abi::translation::{
    Local, LocalKey, Mapping, MappingKey, Masquerade, Outlet, Peer, PeerKey, SourceKey, Translation, TupleKey,
};
use shunt_dataplane::abi::vlan::{Member, MemberKey, TaggedVlans};
use shunt_dataplane::abi::{
    AcceptedFlow, AddressKey, Alias, AliasKey, Count, DropKey, FlowKey, HandedOn, KernelFlow, KernelShare,
    LinkLocal, Marks, Mentions, Owner, Port, PortCounters, PortKey, ReversePath, Station, StationKey,
};
use shunt_dataplane::wire::address::Address;

use super::entries::HeedingEntry;
use crate::failpoints::{self, Failpoint};

/// Why a map could not be used.
#[derive(Debug, thiserror::Error)]
pub enum MapsError {
    /// The object has no such map.
    #[error("the programs' object has no map {0}")]
    Missing(&'static str),
    /// The kernel refused.
    #[error("map {name}: {source}")]
    Map {
        /// The map.
        name: &'static str,
        /// aya's word.
        source: MapError,
    },
}

/// The maps that programs and agent share. [`shunt_dataplane::abi`] says who writes which.
pub struct Maps {
    /// Interfaces that programs run on.
    pub ports: HashMap<MapData, PortKey, Port>,
    /// Stations and their ports.
    pub stations: HashMap<MapData, StationKey, Station>,
    /// Owners of IP addresses.
    pub addresses: HashMap<MapData, AddressKey, Owner>,
    /// Addresses that somebody may know, by their hashes.
    pub mentions: Array<MapData, Mentions>,
    /// Link-local addresses that containers have chosen.
    pub link_locals: HashMap<MapData, PortKey, LinkLocal>,
    /// Ports in VLANs, by their bridges.
    pub members: HashMap<MapData, MemberKey, Member>,
    /// Tagged VLANs per port.
    pub tagged: HashMap<MapData, PortKey, TaggedVlans>,
    /// Stations beyond uplinks.
    pub learned: HashMap<MapData, StationKey, Learned>,
    /// State of learning per uplink.
    pub uplinks: HashMap<MapData, PortKey, Learning>,
    /// The uplinks whose drivers take frames from each other.
    pub nics: DevMapHash<MapData>,
    /// Flows that stay with the kernel.
    pub kernel_flows: HashMap<MapData, FlowKey, KernelFlow>,
    /// `KERNEL_SHARES`.
    pub kernel_shares: Array<MapData, KernelShare>,
    /// Flows that others' rules have let through.
    pub accepted: HashMap<MapData, FlowKey, AcceptedFlow>,
    /// What that is worth.
    pub heeding: Arc<HeedingEntry>,
    /// Flows of datagrams that began outside.
    pub incoming_flows: HashMap<MapData, FlowKey, KernelFlow>,
    /// `OWN_CLAIMS`.
    pub own_claims: HashMap<MapData, TupleKey, KernelFlow>,
    /// `CLAIMS`.
    pub claims: HashMap<MapData, TupleKey, KernelFlow>,
    /// Host ports.
    pub mappings: HashMap<MapData, MappingKey, Mapping>,
    /// The node's own addresses.
    pub locals: LpmTrie<MapData, LocalKey, Local>,
    /// Connected UDP sockets of the node that were translated to containers.
    pub connected_peers: HashMap<MapData, PeerKey, Peer>,
    /// Other sockets of the node that were.
    pub peers: HashMap<MapData, PeerKey, Peer>,
    /// Ports of containers for one socket of the node only.
    pub aliases: HashMap<MapData, AliasKey, Alias>,
    /// The containers' addresses that are masqueraded.
    pub masquerades: HashMap<MapData, AddressKey, Masquerade>,
    /// The addresses by which masqueraded connections leave.
    pub outlets: HashMap<MapData, AddressKey, Outlet>,
    /// Which of them a connection gets.
    pub sources: LpmTrie<MapData, SourceKey, Address>,
    /// Interfaces at which the kernel filters sources.
    pub reverse_paths: HashMap<MapData, PortKey, ReversePath>,
    /// Translated connections that are assured.
    pub assured: HashMap<MapData, TupleKey, Translation>,
    /// What each container has of them, by counter slot.
    pub shares: Array<MapData, Share>,
    /// The other ones.
    pub flows: HashMap<MapData, TupleKey, Translation>,
    /// Translations of datagrams' first fragments.
    pub fragments: HashMap<MapData, FragmentKey, FragmentTranslation>,
    /// The bits of packets' marks.
    pub marks: Array<MapData, Marks>,
    /// Policers of limited ports, by counter slot.
    pub policers: Array<MapData, Policer>,
    /// Subnets of limits, by counter slot.
    pub subnets: LpmTrie<MapData, SubnetKey, u32>,
    counters: PerCpuArray<MapData, PortCounters>,
    drops: PerCpuHashMap<MapData, DropKey, Count>,
    cpus: usize,
}

impl Maps {
    /// Takes the maps out of a loaded object.
    ///
    /// # Errors
    /// [`MapsError`]: the object is not of this version.
    pub fn take(ebpf: &mut Ebpf) -> Result<Self, MapsError> {
        forget_handed_on(ebpf)?;
        let counters: PerCpuArray<MapData, PortCounters> = take(ebpf, "COUNTERS")?;
        let at = |source| MapsError::Map { name: "COUNTERS", source };
        let cpus = counters.get(&0, 0).map_err(at)?.len();
        Ok(Self {
            ports: take(ebpf, "PORTS")?,
            stations: take(ebpf, "FDB")?,
            addresses: take(ebpf, "ADDRESSES")?,
            mentions: take(ebpf, "MENTIONS")?,
            link_locals: take(ebpf, "LINK_LOCALS")?,
            members: take(ebpf, "MEMBERS")?,
            tagged: take(ebpf, "TAGGED")?,
            learned: take(ebpf, "LEARNED")?,
            uplinks: take(ebpf, "UPLINKS")?,
            nics: take(ebpf, "NICS")?,
            kernel_flows: take(ebpf, "KERNEL_FLOWS")?,
            kernel_shares: take(ebpf, "KERNEL_SHARES")?,
            accepted: take(ebpf, "ACCEPTED")?,
            heeding: Arc::new(HeedingEntry::new(take(ebpf, "HEEDING")?)),
            incoming_flows: take(ebpf, "INCOMING_FLOWS")?,
            claims: take(ebpf, "CLAIMS")?,
            own_claims: take(ebpf, "OWN_CLAIMS")?,
            mappings: take(ebpf, "MAPPINGS")?,
            locals: take(ebpf, "LOCALS")?,
            masquerades: take(ebpf, "MASQUERADES")?,
            outlets: take(ebpf, "OUTLETS")?,
            sources: take(ebpf, "SOURCES")?,
            reverse_paths: take(ebpf, "REVERSE_PATHS")?,
            connected_peers: take(ebpf, "CONNECTED_PEERS")?,
            peers: take(ebpf, "PEERS")?,
            aliases: take(ebpf, "ALIASES")?,
            assured: take(ebpf, "ASSURED")?,
            shares: take(ebpf, "SHARES")?,
            flows: take(ebpf, "FLOWS")?,
            fragments: take(ebpf, "FRAGMENTS")?,
            marks: take(ebpf, "MARKS")?,
            policers: take(ebpf, "POLICERS")?,
            subnets: take(ebpf, "SUBNETS")?,
            drops: take(ebpf, "DROPS")?,
            counters,
            cpus,
        })
    }

    /// A port's counters, summed over all CPUs.
    ///
    /// # Errors
    /// The kernel's.
    pub fn counters(&self, slot: u32) -> Result<PortCounters, MapError> {
        let per_cpu = self.counters.get(&slot, 0)?;
        Ok(per_cpu.iter().fold(PortCounters::default(), |sum, cpu| PortCounters {
            from_fast: add(sum.from_fast, cpu.from_fast),
            from_kernel: add(sum.from_kernel, cpu.from_kernel),
            from_dropped: add(sum.from_dropped, cpu.from_dropped),
            to_fast: add(sum.to_fast, cpu.to_fast),
            to_kernel: add(sum.to_kernel, cpu.to_kernel),
            to_dropped: add(sum.to_dropped, cpu.to_dropped),
        }))
    }

    /// Sets a slot's counters to zero, for its next owner.
    ///
    /// # Errors
    /// The kernel's.
    pub fn clear_counters(&mut self, slot: u32) -> Result<(), MapError> {
        let zeros = PerCpuValues::try_from(vec![PortCounters::default(); self.cpus])?;
        self.counters.set(slot, zeros, 0)
    }

    /// Every drop counter, summed over all CPUs.
    ///
    /// # Errors
    /// The kernel's.
    pub fn drops(&self) -> Result<Vec<(DropKey, Count)>, MapError> {
        self.drops
            .iter()
            .map(|entry| {
                entry.map(|(key, per_cpu)| (key, per_cpu.iter().copied().fold(Count::default(), add)))
            })
            .collect()
    }

    /// What was dropped at an interface, by reason. Unreadable counters are left out.
    pub fn drops_of(&self, ifindex: u32) -> impl Iterator<Item = (DropReason, Count)> {
        DropReason::ALL.iter().filter_map(move |reason| {
            let per_cpu = self.drops.get(&DropKey { ifindex, reason: *reason as u32 }, 0).ok()?;
            Some((*reason, per_cpu.iter().copied().fold(Count::default(), add)))
        })
    }

    /// Removes the drop counters of a deleted interface.
    pub fn clear_drops(&mut self, ifindex: u32) {
        for reason in DropReason::ALL {
            // Most reasons have no entry; an entry that cannot be removed only adds a line to a report.
            let _absent = self.drops.remove(&DropKey { ifindex, reason: *reason as u32 });
        }
    }
}

fn add(one: Count, other: Count) -> Count {
    Count { packets: one.packets.wrapping_add(other.packets), bytes: one.bytes.wrapping_add(other.bytes) }
}

/// Empties what an earlier agent's programs may have left: it is of no packet that is still on its way.
fn forget_handed_on(ebpf: &mut Ebpf) -> Result<(), MapsError> {
    const NAME: &str = "HANDED_ON";
    let at = |source| MapsError::Map { name: NAME, source };
    let map = ebpf.map_mut(NAME).ok_or(MapsError::Missing(NAME))?;
    let mut handed = PerCpuArray::<_, HandedOn>::try_from(map).map_err(at)?;
    let cpus = handed.get(&0, 0).map_err(at)?.len();
    let nothing =
        PerCpuValues::try_from(vec![HandedOn::default(); cpus]).map_err(|error| at(error.into()))?;
    handed.set(0, nothing, 0).map_err(at)
}

fn take<M: TryFrom<Map, Error = MapError>>(ebpf: &mut Ebpf, name: &'static str) -> Result<M, MapsError> {
    let map = ebpf.take_map(name).ok_or(MapsError::Missing(name))?;
    M::try_from(map).map_err(|source| MapsError::Map { name, source })
}

/// Reads an entry; none if there is none.
///
/// # Errors
/// The kernel's.
pub fn lookup<K: Pod, V: Pod>(map: &HashMap<MapData, K, V>, key: &K) -> Result<Option<V>, MapError> {
    failpoints::pass(Failpoint::Bpf)?;
    match map.get(key, 0) {
        Ok(value) => Ok(Some(value)),
        Err(MapError::KeyNotFound) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Reads every entry of a map of interfaces.
///
/// # Errors
/// The kernel's.
pub fn by_ifindex<V: Pod>(map: &HashMap<MapData, PortKey, V>) -> Result<BTreeMap<u32, V>, MapError> {
    map.iter().map(|entry| entry.map(|(key, value)| (key.ifindex, value))).collect()
}

/// Writes an entry, over one that is there.
///
/// # Errors
/// The kernel's.
pub fn insert<K: Pod, V: Pod>(map: &mut HashMap<MapData, K, V>, key: K, value: V) -> Result<(), MapError> {
    failpoints::pass(Failpoint::Bpf)?;
    map.insert(key, value, 0)
}

/// Removes an entry; it may be gone already.
///
/// # Errors
/// The kernel's.
pub fn remove<K: Pod, V: Pod>(map: &mut HashMap<MapData, K, V>, key: &K) -> Result<(), MapError> {
    failpoints::pass(Failpoint::Bpf)?;
    match map.remove(key) {
        Err(error) if !is_absent(&error) => Err(error),
        _ => Ok(()),
    }
}

/// Removes a prefix; it may be gone already.
///
/// # Errors
/// The kernel's.
pub fn remove_prefix<K: Pod, V: Pod>(
    map: &mut LpmTrie<MapData, K, V>,
    (bits, prefix): (u32, K),
) -> Result<(), MapError> {
    match map.remove(&Key::new(bits, prefix)) {
        Err(error) if !is_absent(&error) => Err(error),
        _ => Ok(()),
    }
}

/// Removes every entry whose key is not to be kept.
///
/// # Errors
/// The kernel's; some may have been removed.
pub fn retain<K: Pod, V: Pod>(
    map: &mut HashMap<MapData, K, V>,
    keep: impl Fn(&K) -> bool,
) -> Result<(), MapError> {
    let keys: Vec<K> = map.keys().collect::<Result<_, _>>()?;
    keys.iter().filter(|key| !keep(key)).try_for_each(|key| remove(map, key))
}

/// Whether the error says that the map has no room: `E2BIG` of a hash, `ENOSPC` of a trie.
pub fn is_full(error: &MapError) -> bool {
    use std::io::ErrorKind::{ArgumentListTooLong, StorageFull};
    matches!(error, MapError::SyscallError(error) if matches!(error.io_error.kind(), ArgumentListTooLong | StorageFull))
}

/// Whether the error only says that there is no such entry.
pub fn is_absent(error: &MapError) -> bool {
    match error {
        MapError::KeyNotFound => true,
        MapError::SyscallError(error) => error.io_error.kind() == std::io::ErrorKind::NotFound,
        _ => false,
    }
}

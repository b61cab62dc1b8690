//! Checks the shape of pinned maps: aya opens a pinned map without comparing its sizes.

use std::fmt;
use std::path::{Path, PathBuf};

use aya::maps::{MapError, MapInfo, MapType};
use shunt_dataplane::abi::fragment::{FragmentKey, FragmentTranslation, MAX_FRAGMENTS};
use shunt_dataplane::abi::translation::{
    Local, LocalKey, Mapping, MappingKey, Masquerade, Outlet, Peer, PeerKey, SourceKey, Translation, TupleKey,
};
use shunt_dataplane::abi::{self, learning, vlan};
use shunt_dataplane::wire::address::Address;

use super::pins::Pins;

/// The shape of one map.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shape {
    /// Its kind.
    pub kind: MapType,
    /// Bytes of a key.
    pub key: u32,
    /// Bytes of a value.
    pub value: u32,
    /// Entries that fit.
    pub entries: u32,
}

impl Shape {
    const fn new<K, V>(kind: MapType, entries: u32) -> Self {
        Self { kind, key: size_of::<K>() as u32, value: size_of::<V>() as u32, entries }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, key, value, entries } = self;
        write!(f, "{kind:?} of {entries} × ({key} → {value} bytes)")
    }
}

/// A key of `SUBNETS`: `struct bpf_lpm_trie_key` (linux/bpf.h).
type SubnetPrefix = (u32, abi::policer::SubnetKey);
/// The same of `SOURCES`.
type SourcePrefix = (u32, SourceKey);

/// The same of `LOCALS`.
type LocalPrefix = (u32, LocalKey);

/// Bytes of `struct bpf_devmap_val` (linux/bpf.h): an ifindex, and a program.
const DEVMAP_VALUE: u32 = 8;

/// [`Shape::entries`] of a map whose size depends on the machine.
const AS_MADE: u32 = 0;

/// Every map that is pinned, by its name in the object.
pub const MAPS: [(&str, Shape); 38] = [
    ("PORTS", Shape::new::<abi::PortKey, abi::Port>(MapType::Hash, abi::MAX_PORTS)),
    ("HANDED_ON", Shape::new::<u32, abi::HandedOn>(MapType::PerCpuArray, 1)),
    ("FDB", Shape::new::<abi::StationKey, abi::Station>(MapType::Hash, abi::MAX_STATIONS)),
    ("ADDRESSES", Shape::new::<abi::AddressKey, abi::Owner>(MapType::Hash, abi::MAX_ADDRESSES)),
    ("MENTIONS", Shape::new::<u32, abi::Mentions>(MapType::Array, abi::MAX_MENTIONS)),
    ("LINK_LOCALS", Shape::new::<abi::PortKey, abi::LinkLocal>(MapType::Hash, abi::MAX_LINK_LOCALS)),
    ("MEMBERS", Shape::new::<vlan::MemberKey, vlan::Member>(MapType::Hash, vlan::MAX_MEMBERS)),
    ("TAGGED", Shape::new::<abi::PortKey, vlan::TaggedVlans>(MapType::Hash, vlan::MAX_MEMBERS)),
    ("LEARNED", Shape::new::<abi::StationKey, learning::Learned>(MapType::Hash, learning::MAX_LEARNED)),
    ("UPLINKS", Shape::new::<abi::PortKey, learning::Learning>(MapType::Hash, learning::MAX_UPLINKS)),
    (
        "NICS",
        Shape { kind: MapType::DevMapHash, key: 4, value: DEVMAP_VALUE, entries: learning::MAX_UPLINKS },
    ),
    ("KERNEL_FLOWS", Shape::new::<abi::FlowKey, abi::KernelFlow>(MapType::LruHash, abi::MAX_KERNEL_FLOWS)),
    ("KERNEL_SHARES", Shape::new::<u32, abi::KernelShare>(MapType::Array, abi::MAX_SLOTS)),
    ("ACCEPTED", Shape::new::<abi::FlowKey, abi::AcceptedFlow>(MapType::LruHash, abi::MAX_ACCEPTED)),
    ("HEEDING", Shape::new::<u32, abi::Heeding>(MapType::Array, 1)),
    ("OPENED", Shape { kind: MapType::RingBuf, key: 0, value: 0, entries: abi::OPENED_BYTES }),
    ("OWN_CLAIMS", Shape::new::<TupleKey, abi::KernelFlow>(MapType::LruHash, abi::MAX_CLAIMS)),
    ("CLAIMS", Shape::new::<TupleKey, abi::KernelFlow>(MapType::LruHash, abi::MAX_CLAIMS)),
    (
        "INCOMING_FLOWS",
        Shape::new::<abi::FlowKey, abi::KernelFlow>(MapType::LruHash, abi::MAX_INCOMING_FLOWS),
    ),
    ("MAPPINGS", Shape::new::<MappingKey, Mapping>(MapType::Hash, abi::MAX_MAPPINGS)),
    ("LOCALS", Shape::new::<LocalPrefix, Local>(MapType::LpmTrie, abi::MAX_LOCALS)),
    ("MASQUERADES", Shape::new::<abi::AddressKey, Masquerade>(MapType::Hash, abi::MAX_MASQUERADES)),
    ("OUTLETS", Shape::new::<abi::AddressKey, Outlet>(MapType::Hash, abi::MAX_OUTLETS)),
    ("SOURCES", Shape::new::<SourcePrefix, Address>(MapType::LpmTrie, abi::MAX_SOURCES)),
    ("REVERSE_PATHS", Shape::new::<abi::PortKey, abi::ReversePath>(MapType::Hash, abi::MAX_REVERSE_PATHS)),
    ("CONNECTED_PEERS", Shape::new::<PeerKey, Peer>(MapType::Hash, abi::MAX_PEERS)),
    ("PEERS", Shape::new::<PeerKey, Peer>(MapType::LruHash, abi::MAX_PEERS)),
    ("ALIASES", Shape::new::<abi::AliasKey, abi::Alias>(MapType::LruHash, abi::MAX_ALIASES)),
    ("ASSURED", Shape::new::<TupleKey, Translation>(MapType::Hash, AS_MADE)),
    ("SHARES", Shape::new::<u32, abi::share::Share>(MapType::Array, abi::MAX_SLOTS)),
    ("FLOWS", Shape::new::<TupleKey, Translation>(MapType::LruHash, AS_MADE)),
    ("FLOWS_MADE", Shape::new::<u32, u64>(MapType::PerCpuArray, 1)),
    ("FRAGMENTS", Shape::new::<FragmentKey, FragmentTranslation>(MapType::LruHash, MAX_FRAGMENTS)),
    ("COUNTERS", Shape::new::<u32, abi::PortCounters>(MapType::PerCpuArray, abi::MAX_SLOTS)),
    ("MARKS", Shape::new::<u32, abi::Marks>(MapType::Array, 1)),
    ("POLICERS", Shape::new::<u32, abi::policer::Policer>(MapType::Array, abi::policer::MAX_POLICERS)),
    ("SUBNETS", Shape::new::<SubnetPrefix, u32>(MapType::LpmTrie, abi::policer::MAX_SUBNETS)),
    ("DROPS", Shape::new::<abi::DropKey, abi::Count>(MapType::LruPerCpuHash, abi::MAX_DROPS)),
];

/// A pinned map with an unexpected shape.
#[derive(Debug, thiserror::Error)]
pub enum LayoutError {
    /// It has another shape.
    #[error(
        "the pinned map {path} is {found}, this version needs {expected}: \
         it belongs to another build; stop what uses it and remove {path}"
    )]
    Shape {
        /// Its pin.
        path: PathBuf,
        /// What it is.
        found: Shape,
        /// What it should be.
        expected: Shape,
    },
    /// It cannot be looked at.
    #[error("the pinned map {path} cannot be read: {source}")]
    Unreadable {
        /// Its pin.
        path: PathBuf,
        /// aya's word.
        source: MapError,
    },
}

/// Compares every pinned map with its expected shape.
///
/// # Errors
/// The first that differs.
pub fn check(pins: &Pins) -> Result<(), LayoutError> {
    for (name, expected) in MAPS {
        let path = pins.map(name);
        if !path.exists() {
            continue;
        }
        let found = shape(&path, expected)?;
        if found != expected {
            return Err(LayoutError::Shape { path, found, expected });
        }
    }
    Ok(())
}

/// The ABI version since which a map's bytes have their present meaning. A change of the ABI raises this for
/// the maps that it changes; other maps are taken over with their entries.
fn same_since(map: &str) -> u32 {
    match map {
        "FLOWS" | "FLOWS_MADE" | "KERNEL_FLOWS" | "INCOMING_FLOWS" | "CLAIMS" | "OWN_CLAIMS" | "DROPS" => 0,
        // Rewritten from the state files and netlink.
        _ => 1,
    }
}

/// The maps among the `pins` of an agent of version `abi` that are the same now, in shape and in meaning.
///
/// # Errors
/// [`LayoutError::Unreadable`].
pub fn same_as(pins: &Pins, abi: u32) -> Result<Vec<&'static str>, LayoutError> {
    let mut same = Vec::new();
    for (name, expected) in MAPS {
        let path = pins.map(name);
        if same_since(name) <= abi && path.exists() && shape(&path, expected)? == expected {
            same.push(name);
        }
    }
    Ok(same)
}

/// The kernel's ids of the pinned maps, by their names.
///
/// # Errors
/// [`LayoutError::Unreadable`].
pub fn ids(pins: &Pins) -> Result<Vec<(&'static str, u32)>, LayoutError> {
    MAPS.iter().map(|(name, _)| read(&pins.map(name)).map(|info| (*name, info.id()))).collect()
}

/// The shape of a pinned map.
fn shape(path: &Path, expected: Shape) -> Result<Shape, LayoutError> {
    let info = read(path)?;
    Ok(Shape {
        kind: info.map_type().map_err(unreadable(path))?,
        key: info.key_size(),
        value: info.value_size(),
        entries: if expected.entries == AS_MADE { AS_MADE } else { info.max_entries() },
    })
}

fn read(path: &Path) -> Result<MapInfo, LayoutError> {
    MapInfo::from_pin(path).map_err(unreadable(path))
}

fn unreadable(path: &Path) -> impl FnOnce(MapError) -> LayoutError {
    |source| LayoutError::Unreadable { path: path.to_path_buf(), source }
}

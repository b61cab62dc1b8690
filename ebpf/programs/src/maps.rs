//! The maps. The agent pins each under its name and owns what is in it; see [`shunt_dataplane::abi`] for the layout.

use aya_ebpf::bindings::BPF_F_NO_PREALLOC;
use aya_ebpf::macros::map;
use aya_ebpf::maps::lpm_trie::LpmTrie;
use aya_ebpf::maps::{Array, DevMapHash, HashMap, LruHashMap, LruPerCpuHashMap, PerCpuArray, RingBuf};
use shunt_dataplane::abi::fragment::{FragmentKey, FragmentTranslation, MAX_FRAGMENTS};
use shunt_dataplane::abi::learning::{Learned, Learning, MAX_LEARNED, MAX_UPLINKS};
use shunt_dataplane::abi::policer::{MAX_POLICERS, MAX_SUBNETS, Policer, SubnetKey};
use shunt_dataplane::abi::share::Share;
use shunt_dataplane::abi::translation::{
    Local, LocalKey, Mapping, MappingKey, Masquerade, Outlet, Peer, PeerKey, SourceKey, Translation, TupleKey,
};
use shunt_dataplane::abi::vlan::{MAX_MEMBERS, Member, MemberKey, TaggedVlans};
use shunt_dataplane::abi::{
    AcceptedFlow, AddressKey, Alias, AliasKey, Count, DropKey, FlowKey, HandedOn, Heeding, KernelFlow,
    KernelShare, LinkLocal, MAX_ACCEPTED, MAX_ADDRESSES, MAX_ALIASES, MAX_CLAIMS, MAX_DROPS, MAX_FLOWS,
    MAX_INCOMING_FLOWS, MAX_KERNEL_FLOWS, MAX_LINK_LOCALS, MAX_LOCALS, MAX_MAPPINGS, MAX_MASQUERADES,
    MAX_MENTIONS, MAX_OUTLETS, MAX_PEERS, MAX_PORTS, MAX_REVERSE_PATHS, MAX_SLOTS, MAX_SOURCES, MAX_STATIONS,
    Marks, Mentions, OPENED_BYTES, Owner, Port, PortCounters, PortKey, ReversePath, Station, StationKey,
};
use shunt_dataplane::programs::{BeginPlan, DnatPlan, IcmpErrorPlan};
use shunt_dataplane::wire::address::Address;

/// The interfaces that programs run on. The agent writes it at attach and clears it when the link goes; every program
/// reads it, and writes `affinity` only.
#[map]
pub(crate) static PORTS: HashMap<PortKey, Port> = HashMap::with_max_entries(MAX_PORTS, 0);

/// The station behind each port. The agent writes it at attach and clears it when the link goes; `find` reads it.
#[map]
pub(crate) static FDB: HashMap<StationKey, Station> = HashMap::with_max_entries(MAX_STATIONS, 0);

/// The containers' own addresses. The agent writes it at attach and clears it when the link goes; `source_guard`, `track_kernel_flow` and the neighbour proxy read it.
#[map]
pub(crate) static ADDRESSES: HashMap<AddressKey, Owner> = HashMap::with_max_entries(MAX_ADDRESSES, 0);

/// The addresses that somebody on a bridge may know, by their hashes. The agent and `suppress` write and read it; nothing is cleared.
#[map]
pub(crate) static MENTIONS: Array<Mentions> = Array::with_max_entries(MAX_MENTIONS, 0);

/// The link-local addresses that containers on checked ports have chosen. `source_guard` writes and reads it; the agent clears an entry
/// with its port.
#[map]
pub(crate) static LINK_LOCALS: HashMap<PortKey, LinkLocal> =
    HashMap::with_max_entries(MAX_LINK_LOCALS, BPF_F_NO_PREALLOC);

/// The ports in VLANs, by bridge. The agent writes it at attach and clears it when the link goes; `flood` reads it.
#[map]
pub(crate) static MEMBERS: HashMap<MemberKey, Member> =
    HashMap::with_max_entries(MAX_MEMBERS, BPF_F_NO_PREALLOC);

/// The VLANs that ports are tagged members of. The agent writes it at attach and clears it when the link goes; `classify` and
/// `retag` read it.
#[map]
pub(crate) static TAGGED: HashMap<PortKey, TaggedVlans> =
    HashMap::with_max_entries(MAX_MEMBERS, BPF_F_NO_PREALLOC);

/// Stations beyond uplinks. `learn` writes and reads it; the agent ages it.
#[map]
pub(crate) static LEARNED: HashMap<StationKey, Learned> =
    HashMap::with_max_entries(MAX_LEARNED, BPF_F_NO_PREALLOC);

/// What each uplink has learned. The agent makes and clears an entry with the uplink; `learn` counts in it.
#[map]
pub(crate) static UPLINKS: HashMap<PortKey, Learning> = HashMap::with_max_entries(MAX_UPLINKS, 0);

/// The uplinks whose drivers take frames from each other, by ifindex. The agent adds one once its own program is there, and
/// clears it before; `from_nic` asks it.
#[map]
pub(crate) static NICS: DevMapHash = DevMapHash::with_max_entries(MAX_UPLINKS, 0);

/// Flows that are the kernel's for life. `track_kernel_flow`, `flow_affinity` and the agent write it, `flow_affinity` reads it.
/// The least recently used go when it is full, and `KERNEL_SHARES` sees to it that it is not.
#[map]
pub(crate) static KERNEL_FLOWS: LruHashMap<FlowKey, KernelFlow> =
    LruHashMap::with_max_entries(MAX_KERNEL_FLOWS, 0);

/// What each container has of it, by counter slot. `kernel_share` and the agent.
#[map]
pub(crate) static KERNEL_SHARES: Array<KernelShare> = Array::with_max_entries(MAX_SLOTS, 0);

/// Flows that others' rules have let through, and when. `accept`; the least recently used go when it is full.
#[map]
pub(crate) static ACCEPTED: LruHashMap<FlowKey, AcceptedFlow> = LruHashMap::with_max_entries(MAX_ACCEPTED, 0);

/// TCP connections among them whose segments connection tracking still checks. `accept` writes it, the agent reads it.
#[map]
pub(crate) static OPENED: RingBuf = RingBuf::with_byte_size(OPENED_BYTES, 0);

/// What that is worth. The agent writes it, `accept` reads it.
#[map]
pub(crate) static HEEDING: Array<Heeding> = Array::with_max_entries(1, 0);

/// Flows of datagrams that began outside, with containers that are masqueraded: their answers keep the container's address.
/// `track_kernel_flow` writes it, `from_mapped` reads it; the least recently used go when it is full.
#[map]
pub(crate) static INCOMING_FLOWS: LruHashMap<FlowKey, KernelFlow> =
    LruHashMap::with_max_entries(MAX_INCOMING_FLOWS, 0);

/// What answers connections that the node's own sockets have begun outside. `to_wire` writes it, `dnat` and `snat` read it; the least recently
/// used go when it is full.
#[map]
pub(crate) static OWN_CLAIMS: LruHashMap<TupleKey, KernelFlow> = LruHashMap::with_max_entries(MAX_CLAIMS, 0);

/// The same of connections that the kernel masquerades. The agent writes it, too.
#[map]
pub(crate) static CLAIMS: LruHashMap<TupleKey, KernelFlow> = LruHashMap::with_max_entries(MAX_CLAIMS, 0);

/// The node's ports that lead to containers. The agent writes it at attach and clears it when the attachment goes;
/// `dnat` reads it.
#[map]
pub(crate) static MAPPINGS: HashMap<MappingKey, Mapping> =
    HashMap::with_max_entries(MAX_MAPPINGS, BPF_F_NO_PREALLOC);

/// The node's own addresses. The agent keeps it as the kernel says; `dnat` reads it.
#[map]
pub(crate) static LOCALS: LpmTrie<LocalKey, Local> = LpmTrie::with_max_entries(MAX_LOCALS, BPF_F_NO_PREALLOC);

/// The containers' addresses that are masqueraded. The agent writes it at attach and clears it when the attachment goes;
/// `snat` reads it.
#[map]
pub(crate) static MASQUERADES: HashMap<AddressKey, Masquerade> =
    HashMap::with_max_entries(MAX_MASQUERADES, BPF_F_NO_PREALLOC);

/// The addresses by which masqueraded connections leave. The agent keeps it as the kernel says; `masquerade` reads it.
#[map]
pub(crate) static OUTLETS: HashMap<AddressKey, Outlet> =
    HashMap::with_max_entries(MAX_OUTLETS, BPF_F_NO_PREALLOC);

/// Which of them a connection gets, by where it goes. The agent keeps it as the kernel says; `snat` reads it.
#[map]
pub(crate) static SOURCES: LpmTrie<SourceKey, Address> =
    LpmTrie::with_max_entries(MAX_SOURCES, BPF_F_NO_PREALLOC);

/// How the kernel filters sources at interfaces. The agent keeps it as the kernel says; `reverse_path` reads it.
#[map]
pub(crate) static REVERSE_PATHS: HashMap<PortKey, ReversePath> =
    HashMap::with_max_entries(MAX_REVERSE_PATHS, BPF_F_NO_PREALLOC);

/// UDP sockets of the node that were connected to containers, and the addresses that they asked for. The programs on sockets write and read
/// it; the agent sweeps those that are closed.
#[map]
pub(crate) static CONNECTED_PEERS: HashMap<PeerKey, Peer> =
    HashMap::with_max_entries(MAX_PEERS, BPF_F_NO_PREALLOC);

/// The node's other sockets that were redirected to containers, and the same of them. The programs on sockets write and read it; the least
/// recently used go when it is full.
#[map]
pub(crate) static PEERS: LruHashMap<PeerKey, Peer> = LruHashMap::with_max_entries(MAX_PEERS, 0);

/// Ports of containers that are these for one socket of the node only. The programs on sockets write it, those on the bridge and on its
/// ports read it; the least recently used go when it is full.
#[map]
pub(crate) static ALIASES: LruHashMap<AliasKey, Alias> = LruHashMap::with_max_entries(MAX_ALIASES, 0);

/// Translated connections that are assured, an entry for each direction: no other connection takes their room. Each direction's packets
/// write their own; the agent sweeps those that are over.
#[map]
pub(crate) static ASSURED: HashMap<TupleKey, Translation> =
    HashMap::with_max_entries(MAX_FLOWS, BPF_F_NO_PREALLOC);

/// All others, and what is left of the assured ones from before they were. `dnat` and `snat` make both entries of a connection here; the
/// agent sweeps those that are over, and the least recently used go when it is full.
#[map]
pub(crate) static FLOWS: LruHashMap<TupleKey, Translation> = LruHashMap::with_max_entries(MAX_FLOWS, 0);

/// How many entries the programs have inserted into `FLOWS`, less those that they removed. The programs write it; the agent reads
/// it, and computes how many were evicted.
#[map]
pub(crate) static FLOWS_MADE: PerCpuArray<u64> = PerCpuArray::with_max_entries(1, 0);

/// Datagrams whose first fragment was translated, and its translation. `fragments` writes and reads it; the least
/// recently used go when it is full.
#[map]
pub(crate) static FRAGMENTS: LruHashMap<FragmentKey, FragmentTranslation> =
    LruHashMap::with_max_entries(MAX_FRAGMENTS, 0);

/// Traffic by port. The programs write it; the agent reads it, and zeroes a slot before it is used again.
#[map]
pub(crate) static COUNTERS: PerCpuArray<PortCounters> = PerCpuArray::with_max_entries(MAX_SLOTS, 0);

/// The bits of the mark. The agent writes it before any program is attached; the programs read it.
#[map]
pub(crate) static MARKS: Array<Marks> = Array::with_max_entries(1, 0);

/// What each container has of `ASSURED` and `FLOWS`, by counter slot. The agent writes its limits, the programs the rest.
#[map]
pub(crate) static SHARES: Array<Share> = Array::with_max_entries(MAX_SLOTS, 0);

/// The rates of limited ports, by counter slot. The agent writes it; `police` reads it and writes `due`.
#[map]
pub(crate) static POLICERS: Array<Policer> = Array::with_max_entries(MAX_POLICERS, 0);

/// The subnets that rates cover, by counter slot and subnet. The agent writes it; `police` reads it.
#[map]
pub(crate) static SUBNETS: LpmTrie<SubnetKey, u32> =
    LpmTrie::with_max_entries(MAX_SUBNETS, BPF_F_NO_PREALLOC);

/// Drops by port and reason. The programs write it, the agent reads it; the least recently used go when it is full.
#[map]
pub(crate) static DROPS: LruPerCpuHashMap<DropKey, Count> = LruPerCpuHashMap::with_max_entries(MAX_DROPS, 0);

/// What `from_container` hands to `from_mapped` behind it, on this CPU. Pinned: the two may be of different sets.
#[map]
pub(crate) static HANDED_ON: PerCpuArray<HandedOn> = PerCpuArray::with_max_entries(1, 0);

/// What one part of a program has planned for the next about an ICMP error, on this CPU and for this packet. Not pinned.
#[map]
pub(crate) static ICMP_PLANS: PerCpuArray<IcmpErrorPlan> = PerCpuArray::with_max_entries(1, 0);

/// The same of a masqueraded connection's first packet.
#[map]
pub(crate) static BEGIN_PLANS: PerCpuArray<BeginPlan> = PerCpuArray::with_max_entries(1, 0);

/// The same of a host port's connection.
#[map]
pub(crate) static DNAT_PLANS: PerCpuArray<DnatPlan> = PerCpuArray::with_max_entries(1, 0);

/// Where a key of `FLOWS` is composed, on this CPU, for those who have no room for it on their stacks. Not pinned.
#[map]
pub(crate) static ASKED_TUPLE: PerCpuArray<TupleKey> = PerCpuArray::with_max_entries(1, 0);

/// Where an entry of `FRAGMENTS` is composed, on this CPU: the programs have no room for it on their stacks. Not pinned.
#[map]
pub(crate) static FIRST_FRAGMENT: PerCpuArray<(FragmentKey, FragmentTranslation)> =
    PerCpuArray::with_max_entries(1, 0);

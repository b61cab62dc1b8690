//! The maps in memory.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

use shunt_dataplane::Tables;
use shunt_dataplane::abi::fragment::{FragmentKey, FragmentTranslation};
use shunt_dataplane::abi::learning::{Learned, Learning};
use shunt_dataplane::abi::policer::{Policer, SLOT_BITS, SubnetKey};
use shunt_dataplane::abi::share::{Share, Side};
use shunt_dataplane::abi::translation::{
    INTERFACE_BITS, Local, LocalKey, Mapping, MappingKey, Masquerade, Outlet, SourceKey, TRANSLATION_NEAR,
    Translation, TupleKey,
};
use shunt_dataplane::abi::vlan::{Member, MemberKey, TaggedVlans};
use shunt_dataplane::abi::{
    AcceptedFlow, AddressKey, Alias, AliasKey, Count, DropKey, FlowKey, HandedOn, Heeding, KernelShare,
    LinkLocal, Owner, PORT_AWAY, Port, PortCounters, PortKey, Question, ReversePath, STATION_MOVED, Station,
    StationKey, mention,
};
use shunt_dataplane::nat::connection::{Direction, Fate};
use shunt_dataplane::tables::{Followed, Heard, Inserted, Lane, Route, RouteQuery, Unrouted};
use shunt_dataplane::wire::address::Address;

use super::outside;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct MemoryTables {
    /// The clock.
    pub now: Cell<u64>,
    pub ports: RefCell<BTreeMap<PortKey, Port>>,
    pub handed: Cell<HandedOn>,
    pub stations: RefCell<BTreeMap<StationKey, Station>>,
    pub nics: BTreeSet<u32>,
    pub addresses: RefCell<BTreeMap<AddressKey, Owner>>,
    /// Entries of `MENTIONS` and bytes in them.
    pub mentions: RefCell<BTreeSet<(u32, usize)>>,
    pub link_locals: RefCell<BTreeMap<PortKey, LinkLocal>>,
    pub members: BTreeMap<MemberKey, Member>,
    pub tagged: BTreeMap<PortKey, TaggedVlans>,
    pub learned: RefCell<BTreeMap<StationKey, Learned>>,
    pub uplinks: RefCell<BTreeMap<PortKey, Learning>>,
    pub kernel_flows: RefCell<BTreeSet<FlowKey>>,
    pub kernel_shares: RefCell<BTreeMap<u32, KernelShare>>,
    pub accepted: RefCell<BTreeMap<FlowKey, AcceptedFlow>>,
    pub heeding: Heeding,
    /// Connections that the agent is asked for.
    pub opened: RefCell<Vec<Question>>,
    pub incoming_flows: RefCell<BTreeMap<FlowKey, u64>>,
    pub aliases: RefCell<BTreeMap<AliasKey, Alias>>,
    pub claims: RefCell<BTreeMap<TupleKey, u64>>,
    pub own_claims: RefCell<BTreeMap<TupleKey, u64>>,
    pub policers: RefCell<BTreeMap<u32, Policer>>,
    /// Prefixes and whether they are limited.
    pub subnets: Vec<(u32, SubnetKey, u32)>,
    pub counters: RefCell<BTreeMap<u32, PortCounters>>,
    pub drops: RefCell<BTreeMap<DropKey, Count>>,
    pub mappings: BTreeMap<MappingKey, Mapping>,
    pub locals: Vec<(u32, LocalKey, Local)>,
    pub masquerades: BTreeMap<AddressKey, Masquerade>,
    pub outlets: BTreeMap<AddressKey, Outlet>,
    pub sources: Vec<(u32, SourceKey, Address)>,
    pub reverse_paths: BTreeMap<PortKey, ReversePath>,
    pub assured: RefCell<BTreeMap<TupleKey, Translation>>,
    /// Entries that fit into `assured`.
    pub room: usize,
    pub flows: RefCell<BTreeMap<TupleKey, Translation>>,
    pub shares: RefCell<BTreeMap<u32, Share>>,
    pub fragments: RefCell<BTreeMap<FragmentKey, FragmentTranslation>>,
    /// What the clock of translated connections says.
    pub boot_time: u64,
}

impl Tables for MemoryTables {
    fn port(&self, key: &PortKey) -> Option<Port> {
        self.ports.borrow().get(key).copied()
    }

    fn hand_on(&self, here: u32, port: &Port) {
        self.handed.set(HandedOn { ifindex: here, port: *port });
    }

    fn station(&self, key: &StationKey) -> Option<Station> {
        self.stations.borrow().get(key).copied()
    }

    fn mark_moved(&self, key: &StationKey, port: &PortKey, is_moved: bool) {
        let marked = |flags: u32, bit: u32| if is_moved { flags | bit } else { flags & !bit };
        if let Some(station) = self.stations.borrow_mut().get_mut(key) {
            station.flags = marked(station.flags, STATION_MOVED);
        }
        if let Some(port) = self.ports.borrow_mut().get_mut(port) {
            port.flags = marked(port.flags, PORT_AWAY);
        }
    }

    fn mark_port(&self, key: &PortKey, bit: u32, is_set: bool) {
        if let Some(port) = self.ports.borrow_mut().get_mut(key) {
            port.flags = if is_set { port.flags | bit } else { port.flags & !bit };
        }
    }

    fn mention(&self, key: &AddressKey) {
        self.mentions.borrow_mut().insert(mention(key));
    }

    fn is_mentioned(&self, key: &AddressKey) -> bool {
        self.mentions.borrow().contains(&mention(key))
    }

    fn give(&self, key: &AddressKey, owner: &Owner) {
        if let Some(known) = self.addresses.borrow_mut().get_mut(key) {
            *known = *owner;
        }
    }

    fn learned(&self, key: &StationKey) -> Option<Learned> {
        self.learned.borrow().get(key).copied()
    }

    fn learn(&self, key: &StationKey, value: &Learned) -> bool {
        self.learned.borrow_mut().insert(*key, *value);
        true
    }

    fn unlearn(&self, key: &StationKey) {
        self.learned.borrow_mut().remove(key);
    }

    fn uplink(&self, key: &PortKey) -> Option<Learning> {
        self.uplinks.borrow().get(key).copied()
    }

    fn count_heard(&self, key: &PortKey, heard: Heard) {
        if let Some(uplink) = self.uplinks.borrow_mut().get_mut(key) {
            match heard {
                Heard::New => uplink.held += 1,
                Heard::Refused => uplink.refused += 1,
                Heard::Moved => uplink.moved += 1,
                Heard::Again | Heard::Still => {}
            }
        }
    }

    fn takes(&self, ifindex: u32) -> bool {
        self.nics.contains(&ifindex)
    }

    fn owner(&self, key: &AddressKey) -> Option<Owner> {
        self.addresses.borrow().get(key).copied()
    }

    fn link_local(&self, key: &PortKey) -> Option<LinkLocal> {
        self.link_locals.borrow().get(key).copied()
    }

    fn choose_link_local(&self, key: &PortKey, value: &LinkLocal) -> bool {
        if self.link_locals.borrow().contains_key(key) {
            return false;
        }
        self.link_locals.borrow_mut().insert(*key, *value);
        true
    }

    fn forget_link_local(&self, key: &PortKey) {
        self.link_locals.borrow_mut().remove(key);
    }

    fn is_tagged(&self, key: &PortKey, vid: u16) -> bool {
        self.tagged.get(key).is_some_and(|vlans| vlans.has(vid))
    }

    fn member(&self, key: &MemberKey) -> Option<Member> {
        self.members.get(key).copied()
    }

    fn repeat(&self, times: u32, mut body: impl FnMut(u32) -> bool) {
        let _ = (0..times).all(&mut body);
    }

    fn policer(&self, slot: u32) -> Option<Policer> {
        let policer = self.policers.borrow().get(&slot).copied();
        assert!(policer.is_some(), "slot {slot} is not limited, and nothing is to be looked up");
        policer
    }

    fn is_limited(&self, key: &SubnetKey) -> bool {
        let subnets = self.subnets.iter().filter(|(bits, prefix, _)| {
            prefix.slot == key.slot && is_in(*bits - SLOT_BITS, prefix.address, key.address)
        });
        subnets.max_by_key(|(bits, ..)| *bits).is_none_or(|(.., limited)| *limited != 0)
    }

    fn now(&self) -> u64 {
        self.now.get()
    }

    fn begin(&self, slot: u32, due: u64) {
        self.policers.borrow_mut().entry(slot).and_modify(|policer| policer.due = due);
    }

    fn charge(&self, slot: u32, nanoseconds: u64) {
        self.policers.borrow_mut().entry(slot).and_modify(|policer| policer.due += nanoseconds);
    }

    fn boot_time(&self) -> u64 {
        self.boot_time
    }

    fn mapping(&self, key: &MappingKey) -> Option<Mapping> {
        self.mappings.get(key).copied()
    }

    fn is_local(&self, address: &Address) -> bool {
        self.locals.iter().any(|(bits, prefix, _)| is_in(*bits, prefix.address, *address))
    }

    fn follow(
        &self,
        mine: &TupleKey,
        other: &mut TupleKey,
        packet: Option<&Followed>,
        judge: impl FnOnce(Direction, Direction) -> Fate,
    ) -> Option<Fate> {
        self.follow_flow((mine, other), packet, judge)
    }

    fn becomes(&self, key: &TupleKey) -> Option<(TupleKey, u32)> {
        self.flow(key).map(|flow| (flow.becomes, flow.holder))
    }

    fn answers_neighbor(&self, flow: &FlowKey, source: Address) -> bool {
        self.flow(&TupleKey::of(flow, source)).is_some_and(|flow| flow.flags & TRANSLATION_NEAR != 0)
    }

    fn share(&self, slot: u32) -> Option<Share> {
        Some(self.shares.borrow().get(&slot).copied().unwrap_or_default())
    }

    fn begin_openings(&self, slot: u32, side: Side, due: u64) {
        self.shares.borrow_mut().entry(slot).or_default().due[side as usize] = due;
    }

    fn charge_opening(&self, slot: u32, side: Side, nanoseconds: u64) {
        self.shares.borrow_mut().entry(slot).or_default().due[side as usize] += nanoseconds;
    }

    fn masquerade(&self, key: &AddressKey) -> Option<Masquerade> {
        self.masquerades.get(key).copied()
    }

    fn outlet(&self, key: &AddressKey) -> Option<Outlet> {
        self.outlets.get(key).copied()
    }

    fn source(&self, key: &SourceKey) -> Option<Address> {
        let matching = self.sources.iter().filter(|(bits, prefix, _)| {
            prefix.ifindex == key.ifindex && is_in(*bits - INTERFACE_BITS, prefix.address, key.address)
        });
        matching.max_by_key(|(bits, ..)| *bits).map(|(.., source)| *source)
    }

    fn reverse_path(&self, key: &PortKey) -> Option<ReversePath> {
        self.reverse_paths.get(key).copied()
    }

    fn has_socket(&self, tuple: &TupleKey) -> bool {
        outside::has_socket(tuple)
    }

    fn insert_flow(&self, key: &TupleKey, value: &Translation) -> Inserted {
        self.insert(key, value)
    }

    fn replace_flow(&self, key: &TupleKey, value: &Translation) -> bool {
        self.assured.borrow_mut().remove(key);
        self.put(key, *value);
        true
    }

    fn forget_flow(&self, key: &TupleKey) {
        self.assured.borrow_mut().remove(key);
        self.flows.borrow_mut().remove(key);
    }

    fn remember_fragment(&self, identification: [u16; 2], key: &TupleKey, becomes: &TupleKey) {
        let at = FragmentKey {
            domain: key.domain,
            identification,
            source: key.source,
            destination: key.destination,
            protocol: key.protocol,
            pad: [0; 3],
        };
        let first = FragmentTranslation {
            source: becomes.source,
            destination: becomes.destination,
            domain: becomes.domain,
            pad: 0,
            seen: self.boot_time,
        };
        self.fragments.borrow_mut().insert(at, first);
    }

    fn fragment(&self, key: &FragmentKey) -> Option<FragmentTranslation> {
        self.fragments.borrow().get(key).copied()
    }

    fn route(&self, query: &RouteQuery) -> Result<Route, Unrouted> {
        outside::route(query)
    }

    fn count(&self, slot: u32, lane: Lane, bytes: u32) {
        let mut counters = self.counters.borrow_mut();
        let counters = counters.entry(slot).or_default();
        let count = match lane {
            Lane::FromFast => &mut counters.from_fast,
            Lane::FromKernel => &mut counters.from_kernel,
            Lane::FromDropped => &mut counters.from_dropped,
            Lane::ToFast => &mut counters.to_fast,
            Lane::ToKernel => &mut counters.to_kernel,
            Lane::ToDropped => &mut counters.to_dropped,
        };
        count.packets += 1;
        count.bytes += u64::from(bytes);
    }

    fn count_drop(&self, key: &DropKey, bytes: u32) {
        let mut drops = self.drops.borrow_mut();
        let count = drops.entry(*key).or_default();
        count.packets += 1;
        count.bytes += u64::from(bytes);
    }
}

/// Whether both have the same leading bits.
fn is_in(bits: u32, prefix: Address, address: Address) -> bool {
    let [one, other] = [prefix, address].map(|address| u128::from_be_bytes(zerocopy::transmute!(address)));
    (one ^ other).leading_zeros() >= bits
}

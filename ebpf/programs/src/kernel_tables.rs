//! The kernel's maps as [`Tables`].

mod accepted_flows;
mod aliases;
mod atomic;
mod clock;
mod counters;
mod flows;
mod kernel_flows;
mod marks;
mod mentions;
mod policers;
mod shares;
mod update;
mod uplinks;

use aya_ebpf::bindings::xdp_action::{XDP_PASS, XDP_REDIRECT};
use aya_ebpf::bindings::{__sk_buff, bpf_sock_addr};
use aya_ebpf::helpers::generated::bpf_ktime_get_ns;
use aya_ebpf::maps::lpm_trie::Key;
use shunt_dataplane::Tables;
use shunt_dataplane::abi::fragment::{FragmentKey, FragmentTranslation};
use shunt_dataplane::abi::learning::{Learned, Learning};
use shunt_dataplane::abi::policer::{Policer, SUBNET_BITS, SubnetKey};
use shunt_dataplane::abi::share::{Share, Side};
use shunt_dataplane::abi::translation::{
    LOCAL_BITS, LocalKey, Mapping, MappingKey, Masquerade, Outlet, SOURCE_BITS, SourceKey, Translation,
    TupleKey,
};
use shunt_dataplane::abi::vlan::{Member, MemberKey};
use shunt_dataplane::abi::{
    AddressKey, DropKey, FlowKey, HandedOn, LinkLocal, Owner, Port, PortKey, ReversePath, Station, StationKey,
};
use shunt_dataplane::nat::connection::{Direction, Fate};
use shunt_dataplane::tables::{Followed, Heard, Inserted, Lane, Route, RouteQuery, Unrouted};
use shunt_dataplane::wire::address::Address;

use self::clock::boot_time;
use self::update::{ANY, EXIST, NOEXIST};
use crate::maps::{
    ADDRESSES, FDB, FRAGMENTS, HANDED_ON, LEARNED, LINK_LOCALS, LOCALS, MAPPINGS, MASQUERADES, MEMBERS, NICS,
    OUTLETS, PORTS, REVERSE_PATHS, SOURCES, SUBNETS, TAGGED, UPLINKS,
};
use crate::skb::Skb;
use crate::{bpf_loop, node_sockets, route};

/// All maps, which are statics, and the context, which route look-ups need.
pub(crate) struct KernelTables {
    skb: *mut __sk_buff,
}

impl KernelTables {
    #[inline(always)]
    pub(crate) fn new<const KIND: u8>(packet: &Skb<KIND>) -> Self {
        Self { skb: packet.raw() }
    }

    /// For programs without a packet, which look up no route.
    #[inline(always)]
    pub(crate) fn without_packet() -> Self {
        Self { skb: core::ptr::null_mut() }
    }

    /// For programs on a socket, which look up no route; the kernel takes their context where it looks for sockets.
    #[inline(always)]
    pub(crate) fn of_socket(socket: *mut bpf_sock_addr) -> Self {
        Self { skb: socket.cast() }
    }
}

impl Tables for KernelTables {
    #[inline(always)]
    fn port(&self, key: &PortKey) -> Option<Port> {
        // SAFETY: an entry that is replaced meanwhile is read as a mixture at worst; the agent writes the whole entry
        // before traffic flows, and afterwards only single words of it change.
        unsafe { PORTS.get(key) }.copied()
    }

    #[inline(always)]
    fn hand_on(&self, here: u32, port: &Port) {
        let Some(place) = HANDED_ON.get_ptr_mut(0) else { return };
        // SAFETY: the pointer is to this CPU's value, which nobody else has while this program runs.
        unsafe { *place = HandedOn { ifindex: here, port: *port } };
    }

    #[inline(always)]
    fn station(&self, key: &StationKey) -> Option<Station> {
        // SAFETY: as in `port`.
        unsafe { FDB.get(key) }.copied()
    }

    #[inline(always)]
    fn mark_moved(&self, key: &StationKey, port: &PortKey, is_moved: bool) {
        marks::moved(key, port, is_moved);
    }

    #[inline(always)]
    fn mark_port(&self, key: &PortKey, bit: u32, is_set: bool) {
        marks::port(key, bit, is_set);
    }

    #[inline(always)]
    fn mention(&self, key: &AddressKey) {
        mentions::mention(key);
    }

    #[inline(always)]
    fn is_mentioned(&self, key: &AddressKey) -> bool {
        mentions::is_mentioned(key)
    }

    #[inline(always)]
    fn give(&self, key: &AddressKey, owner: &Owner) {
        // The agent may have removed it: then nobody has it.
        let _ = ADDRESSES.insert(key, owner, EXIST);
    }

    #[inline(always)]
    fn learned(&self, key: &StationKey) -> Option<Learned> {
        // SAFETY: as in `port`.
        unsafe { LEARNED.get(key) }.copied()
    }

    #[inline(always)]
    fn learn(&self, key: &StationKey, value: &Learned) -> bool {
        LEARNED.insert(key, value, ANY).is_ok()
    }

    #[inline(always)]
    fn unlearn(&self, key: &StationKey) {
        // The agent may have been first.
        let _ = LEARNED.remove(key);
    }

    #[inline(always)]
    fn uplink(&self, key: &PortKey) -> Option<Learning> {
        // SAFETY: as in `port`.
        unsafe { UPLINKS.get(key) }.copied()
    }

    #[inline(always)]
    fn count_heard(&self, key: &PortKey, heard: Heard) {
        uplinks::count(key, heard);
    }

    #[inline(always)]
    fn takes(&self, ifindex: u32) -> bool {
        NICS.redirect(ifindex, u64::from(XDP_PASS)) == Ok(XDP_REDIRECT)
    }

    #[inline(always)]
    fn owner(&self, key: &AddressKey) -> Option<Owner> {
        // SAFETY: as in `port`; one word.
        unsafe { ADDRESSES.get(key) }.copied()
    }

    #[inline(always)]
    fn link_local(&self, key: &PortKey) -> Option<LinkLocal> {
        // SAFETY: as in `port`; written once, with the entry.
        unsafe { LINK_LOCALS.get(key) }.copied()
    }

    #[inline(always)]
    fn choose_link_local(&self, key: &PortKey, value: &LinkLocal) -> bool {
        LINK_LOCALS.insert(key, value, NOEXIST).is_ok()
    }

    #[inline(always)]
    fn forget_link_local(&self, key: &PortKey) {
        // Another CPU may have been first.
        let _ = LINK_LOCALS.remove(key);
    }

    #[inline(always)]
    fn is_tagged(&self, key: &PortKey, vid: u16) -> bool {
        // SAFETY: as in `port`; one word of it.
        TAGGED.get_ptr(key).is_some_and(|vlans| unsafe { (*vlans).has(vid) })
    }

    #[inline(always)]
    fn member(&self, key: &MemberKey) -> Option<Member> {
        // SAFETY: as in `port`; one word.
        unsafe { MEMBERS.get(key) }.copied()
    }

    #[inline(always)]
    fn repeat(&self, times: u32, mut body: impl FnMut(u32) -> bool) {
        bpf_loop::each(times, &mut body);
    }

    #[inline(always)]
    fn policer(&self, slot: u32) -> Option<Policer> {
        policers::policer(slot)
    }

    #[inline(always)]
    fn is_limited(&self, key: &SubnetKey) -> bool {
        SUBNETS.get(Key::new(SUBNET_BITS, *key)).is_none_or(|limited| *limited != 0)
    }

    #[inline(always)]
    fn now(&self) -> u64 {
        // SAFETY: the helper only reads a clock.
        unsafe { bpf_ktime_get_ns() }
    }

    #[inline(always)]
    fn begin(&self, slot: u32, due: u64) {
        policers::begin(slot, due);
    }

    #[inline(always)]
    fn charge(&self, slot: u32, nanoseconds: u64) {
        policers::charge(slot, nanoseconds);
    }

    #[inline(always)]
    fn boot_time(&self) -> u64 {
        boot_time()
    }

    #[inline(always)]
    fn mapping(&self, key: &MappingKey) -> Option<Mapping> {
        // SAFETY: as in `port`.
        unsafe { MAPPINGS.get(key) }.copied()
    }

    #[inline(always)]
    fn is_local(&self, address: &Address) -> bool {
        LOCALS.get(Key::new(LOCAL_BITS, LocalKey { address: *address })).is_some()
    }

    #[inline(always)]
    fn follow(
        &self,
        mine: &TupleKey,
        other: &mut TupleKey,
        packet: Option<&Followed>,
        judge: impl FnOnce(Direction, Direction) -> Fate,
    ) -> Option<Fate> {
        flows::follow(mine, other, packet, judge)
    }

    #[inline(always)]
    fn becomes(&self, key: &TupleKey) -> Option<(TupleKey, u32)> {
        flows::becomes(key)
    }

    #[inline(always)]
    fn share(&self, slot: u32) -> Option<Share> {
        shares::share(slot)
    }

    #[inline(always)]
    fn begin_openings(&self, slot: u32, side: Side, due: u64) {
        shares::begin(slot, side, due);
    }

    #[inline(always)]
    fn charge_opening(&self, slot: u32, side: Side, nanoseconds: u64) {
        shares::charge(slot, side, nanoseconds);
    }

    #[inline(always)]
    fn answers_neighbor(&self, flow: &FlowKey, source: Address) -> bool {
        flows::answers_neighbor(flow, source)
    }

    #[inline(always)]
    fn masquerade(&self, key: &AddressKey) -> Option<Masquerade> {
        // SAFETY: as in `port`.
        unsafe { MASQUERADES.get(key) }.copied()
    }

    #[inline(always)]
    fn outlet(&self, key: &AddressKey) -> Option<Outlet> {
        // SAFETY: as in `port`.
        unsafe { OUTLETS.get(key) }.copied()
    }

    #[inline(always)]
    fn source(&self, key: &SourceKey) -> Option<Address> {
        SOURCES.get(Key::new(SOURCE_BITS, *key)).copied()
    }

    #[inline(always)]
    fn reverse_path(&self, key: &PortKey) -> Option<ReversePath> {
        // SAFETY: as in `port`.
        unsafe { REVERSE_PATHS.get(key) }.copied()
    }

    #[inline(always)]
    fn has_socket(&self, tuple: &TupleKey) -> bool {
        node_sockets::would_receive(self.skb, tuple)
    }

    #[inline(always)]
    fn insert_flow(&self, key: &TupleKey, value: &Translation) -> Inserted {
        flows::insert(key, value)
    }

    #[inline(always)]
    fn replace_flow(&self, key: &TupleKey, value: &Translation) -> bool {
        flows::replace(key, value)
    }

    #[inline(always)]
    fn forget_flow(&self, key: &TupleKey) {
        flows::forget(key);
    }

    #[inline(always)]
    fn remember_fragment(&self, identification: [u16; 2], key: &TupleKey, becomes: &TupleKey) {
        flows::remember_fragment(identification, key, becomes);
    }

    #[inline(always)]
    fn fragment(&self, key: &FragmentKey) -> Option<FragmentTranslation> {
        // SAFETY: as in `port`.
        unsafe { FRAGMENTS.get(key) }.copied()
    }

    #[inline(always)]
    fn route(&self, query: &RouteQuery) -> Result<Route, Unrouted> {
        route::route(self.skb, query)
    }

    #[inline(always)]
    fn count(&self, slot: u32, lane: Lane, bytes: u32) {
        counters::count(slot, lane, bytes);
    }

    #[inline(always)]
    fn count_drop(&self, key: &DropKey, bytes: u32) {
        counters::count_drop(key, bytes);
    }
}

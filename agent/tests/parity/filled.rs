//! The golden world in the maps.

use std::collections::BTreeMap;

use aya::maps::lpm_trie::{Key, LpmTrie};
use aya::maps::{Array, HashMap, PerCpuArray, PerCpuHashMap, PerCpuValues};
use aya::util::nr_cpus;

use shunt_dataplane::abi::fragment::{FragmentKey, FragmentTranslation};
use shunt_dataplane::abi::learning::{Learned, Learning};
use shunt_dataplane::abi::policer::{Policer, SubnetKey};
use shunt_dataplane::abi::share::Share;
use shunt_dataplane::abi::translation::{
    Local, LocalKey, Mapping, MappingKey, Masquerade, Outlet, SourceKey, Translation, TupleKey,
};
use shunt_dataplane::abi::vlan::{Member, MemberKey, TaggedVlans};
use shunt_dataplane::abi::{
    AcceptedFlow, AddressKey, Alias, AliasKey, Count, DropKey, FlowKey, HandedOn, Heeding, KernelFlow,
    KernelShare, LinkLocal, Marks, Mentions, Owner, Port, PortCounters, PortKey, ReversePath, Station,
    StationKey, mention,
};
use shunt_dataplane::wire::address::Address;

use super::{Kernel, MARKS};
use crate::golden::{accepted, members, outside, shares, spared, uplinks, world};

impl Kernel {
    /// Puts the world into the maps and forgets what earlier packets left there.
    pub(crate) fn fill(&mut self, now: u64) {
        self.replace::<PortKey, Port>("PORTS", world::ports());
        self.replace::<StationKey, Station>("FDB", world::stations());
        self.replace::<AddressKey, Owner>("ADDRESSES", world::addresses());
        self.replace::<PortKey, LinkLocal>("LINK_LOCALS", world::link_locals(now));
        self.replace::<MappingKey, Mapping>("MAPPINGS", outside::mappings());
        self.replace::<AddressKey, Masquerade>("MASQUERADES", outside::masquerades());
        self.replace::<AddressKey, Outlet>("OUTLETS", outside::outlets());
        self.replace::<PortKey, ReversePath>("REVERSE_PATHS", outside::reverse_paths());
        self.replace::<TupleKey, Translation>("ASSURED", outside::assured(now));
        self.replace::<TupleKey, Translation>("FLOWS", outside::flows(now));
        self.share_out(&shares::shares(now).into_iter().collect());
        self.replace::<FragmentKey, FragmentTranslation>("FRAGMENTS", outside::fragments(now));
        self.replace::<MemberKey, Member>("MEMBERS", members::members());
        self.replace::<PortKey, TaggedVlans>("TAGGED", members::tagged());
        self.replace::<StationKey, Learned>("LEARNED", uplinks::learned(now));
        self.replace::<PortKey, Learning>("UPLINKS", uplinks::learning());
        let flows = world::kernel_flows().into_iter().map(|key| (key, KernelFlow::default()));
        self.replace::<FlowKey, KernelFlow>("KERNEL_FLOWS", flows.collect());
        let mut kernel_shares: Array<_, KernelShare> =
            self.map("KERNEL_SHARES").try_into().expect("KERNEL_SHARES");
        for (slot, share) in shares::of_kernel_flows() {
            kernel_shares.set(slot, share, 0).expect("a slot");
        }
        self.replace::<FlowKey, AcceptedFlow>("ACCEPTED", accepted::flows(now));
        let mut heeding: Array<_, Heeding> = self.map("HEEDING").try_into().expect("HEEDING");
        heeding.set(0, accepted::HEEDING, 0).expect("the one entry");
        let flows = world::incoming_flows().into_iter().map(|key| (key, KernelFlow { noticed: now }));
        self.replace::<FlowKey, KernelFlow>("INCOMING_FLOWS", flows.collect());
        self.replace::<AliasKey, Alias>("ALIASES", outside::aliases(now));
        self.replace::<TupleKey, KernelFlow>("CLAIMS", Vec::new());
        let flows = outside::own_claims().into_iter().map(|key| (key, KernelFlow { noticed: now }));
        self.replace::<TupleKey, KernelFlow>("OWN_CLAIMS", flows.collect());
        let mut drops: PerCpuHashMap<_, DropKey, Count> = self.map("DROPS").try_into().expect("DROPS");
        for key in drops.keys().collect::<Result<Vec<_>, _>>().expect("keys of DROPS") {
            drops.remove(&key).expect("a drop count that is there");
        }
        let mut policers: Array<_, Policer> = self.map("POLICERS").try_into().expect("POLICERS");
        for (slot, policer) in world::policers() {
            policers.set(slot, policer, 0).expect("a slot");
        }
        let mut mentions: Array<_, Mentions> = self.map("MENTIONS").try_into().expect("MENTIONS");
        for key in spared::link_locals() {
            mentions.set(mention(&key).0, Mentions::default(), 0).expect("an entry");
        }
        let mut marks: Array<_, Marks> = self.map("MARKS").try_into().expect("MARKS");
        marks.set(0, MARKS, 0).expect("the one entry");
        let mut sources: LpmTrie<_, SourceKey, Address> = self.map("SOURCES").try_into().expect("SOURCES");
        for (bits, key, source) in outside::sources() {
            sources.insert(&Key::new(bits, key), source, 0).expect("a source");
        }
        let mut locals: LpmTrie<_, LocalKey, Local> = self.map("LOCALS").try_into().expect("LOCALS");
        for (bits, key, local) in outside::locals() {
            locals.insert(&Key::new(bits, key), local, 0).expect("a local prefix");
        }
        let mut subnets: LpmTrie<_, SubnetKey, u32> = self.map("SUBNETS").try_into().expect("SUBNETS");
        for (bits, subnet, limited) in world::subnets() {
            subnets.insert(&Key::new(bits, subnet), limited, 0).expect("a subnet");
        }
        let mut counters: PerCpuArray<_, PortCounters> = self.map("COUNTERS").try_into().expect("COUNTERS");
        let zero = vec![PortCounters::default(); nr_cpus().expect("a number of CPUs")];
        for slot in 0..=world::places().count() as u32 {
            let values = PerCpuValues::try_from(zero.clone()).expect("one for each CPU");
            counters.set(slot, values, 0).expect("a slot");
        }
    }

    /// What the containers have of the tables of connections.
    pub(crate) fn share_out(&mut self, shares: &BTreeMap<u32, Share>) {
        let mut map: Array<_, Share> = self.map("SHARES").try_into().expect("SHARES");
        for (slot, share) in shares {
            map.set(*slot, share, 0).expect("a slot");
        }
    }

    /// Puts what `from_container` would hand on, or nothing, into each CPU's value.
    pub(super) fn hand_on(&mut self, here: u32, is_handed: bool) {
        let ports: HashMap<_, PortKey, Port> = self.map("PORTS").try_into().expect("PORTS");
        let port = ports.get(&PortKey { ifindex: here }, 0).ok().filter(|_| is_handed);
        let handed = port.map(|port| HandedOn { ifindex: here, port }).unwrap_or_default();
        let values = vec![handed; nr_cpus().expect("a number of CPUs")];
        self.handed = handed;
        let mut place: PerCpuArray<_, HandedOn> = self.map("HANDED_ON").try_into().expect("HANDED_ON");
        place.set(0, PerCpuValues::try_from(values).expect("one for each CPU"), 0).expect("the one entry");
    }
}

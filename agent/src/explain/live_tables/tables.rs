//! The look-ups, each with a text of what was found. Updates are reported and not made.

use std::net::IpAddr;

use aya::maps::lpm_trie::Key;
use shunt_dataplane::Tables;
use shunt_dataplane::abi::fragment::{FragmentKey, FragmentTranslation};
use shunt_dataplane::abi::learning::{Learned, Learning};
use shunt_dataplane::abi::policer::{Policer, SUBNET_BITS, SubnetKey};
use shunt_dataplane::abi::share::{Share, Side};
use shunt_dataplane::abi::translation::{
    Mapping, MappingKey, Masquerade, Outlet, SOURCE_BITS, SourceKey, TRANSLATION_NEAR, Translation, TupleKey,
};
use shunt_dataplane::abi::vlan::{Member, MemberKey, TaggedVlans};
use shunt_dataplane::abi::{
    AddressKey, DropKey, FlowKey, LinkLocal, NO_OWNER, Owner, Port, PortKey, ReversePath, Station,
    StationKey, mention,
};
use shunt_dataplane::nat::connection::{Direction, Fate};
use shunt_dataplane::tables::{Followed, Heard, Inserted, Lane, Route, RouteQuery, Unrouted};
use shunt_dataplane::wire::address::Address;

use super::super::asked::Asked;
use super::{LiveTables, datagram, filter_name, tuple};
use crate::mac;

impl Tables for LiveTables<'_> {
    fn port(&self, key: &PortKey) -> Option<Port> {
        let asked = if key.ifindex == self.here { Asked::Here } else { Asked::Port };
        let found = |port: &Port| {
            let Port { flags, affinity, vid, .. } = *port;
            format!("{}, flags {flags:#x}, affinity {affinity}, vid {vid}", self.name(port.bridge))
        };
        self.look((asked, "PORTS"), &self.maps.ports, (key, self.name(key.ifindex)), found)
    }

    fn hand_on(&self, _here: u32, _port: &Port) {}

    fn station(&self, key: &StationKey) -> Option<Station> {
        let called = format!("{}, {}", self.name(key.bridge), mac::format(key.mac));
        let found = |station: &Station| {
            let Station { ifindex, mtu, flags, .. } = *station;
            format!("behind {}, mtu {mtu}, flags {flags:#x}", self.name(ifindex))
        };
        self.look((Asked::Station, "FDB"), &self.maps.stations, (key, called), found)
    }

    fn mark_moved(&self, key: &StationKey, _: &PortKey, is_moved: bool) {
        let where_to = if is_moved { "moved to here" } else { "back" };
        self.note(Asked::Announced, format!("FDB[{}] would be marked: {where_to}", mac::format(key.mac)));
    }

    fn mark_port(&self, key: &PortKey, bit: u32, is_set: bool) {
        let change = if is_set { "set" } else { "taken away" };
        let name = self.name(key.ifindex);
        self.note(Asked::Announced, format!("PORTS[{name}]: the flag {bit:#x} would be {change}"));
    }

    fn mention(&self, key: &AddressKey) {
        let address = IpAddr::from(key.address);
        self.note(Asked::Announced, format!("MENTIONS[{address}] would be written: somebody may know it"));
    }

    fn is_mentioned(&self, key: &AddressKey) -> bool {
        // What cannot be read counts as known: then everybody is told.
        let (entry, byte) = mention(key);
        let is_mentioned = self.maps.mentions.get(&entry, 0).map_or(true, |known| known[byte] != 0);
        let known = if is_mentioned { "somebody may know it" } else { "nobody knows it" };
        self.note(Asked::Announced, format!("MENTIONS[{}]: {known}", IpAddr::from(key.address)));
        is_mentioned
    }

    fn give(&self, key: &AddressKey, owner: &Owner) {
        let now = if owner.ifindex == NO_OWNER {
            "a station behind here".to_owned()
        } else {
            self.name(owner.ifindex)
        };
        self.note(
            Asked::Announced,
            format!("ADDRESSES[{}] would be written: {now} has it", IpAddr::from(key.address)),
        );
    }

    fn learned(&self, key: &StationKey) -> Option<Learned> {
        let found = |known: &Learned| {
            let seconds = self.times.boot.saturating_sub(known.seen) / 1_000_000_000;
            format!("beyond {}, heard {seconds} s ago", self.name(known.station.ifindex))
        };
        self.look((Asked::Learned, "LEARNED"), &self.maps.learned, (key, mac::format(key.mac)), found)
    }

    fn learn(&self, key: &StationKey, value: &Learned) -> bool {
        let beyond = self.name(value.station.ifindex);
        self.note(
            Asked::Learned,
            format!("LEARNED[{}] would be written: beyond {beyond}", mac::format(key.mac)),
        );
        true
    }

    fn unlearn(&self, key: &StationKey) {
        self.note(
            Asked::Learned,
            format!("LEARNED[{}] would be removed: it has moved", mac::format(key.mac)),
        );
    }

    fn uplink(&self, key: &PortKey) -> Option<Learning> {
        let found = |known: &Learning| format!("{} stations known", known.held);
        let asked = (Asked::Learned, "UPLINKS");
        self.look(asked, &self.maps.uplinks, (key, self.name(key.ifindex)), found)
    }

    fn count_heard(&self, _: &PortKey, _: Heard) {}

    /// The programs of the stack are explained: the driver's decides nothing that they would not.
    fn takes(&self, _: u32) -> bool {
        false
    }

    fn owner(&self, key: &AddressKey) -> Option<Owner> {
        let called = format!("{}, {}", self.name(key.bridge), IpAddr::from(key.address));
        let found = |owner: &Owner| format!("behind {}", self.name(owner.ifindex));
        self.look((Asked::Owner, "ADDRESSES"), &self.maps.addresses, (key, called), found)
    }

    fn resident(&self, key: &AddressKey, vid: u16) -> Option<(Port, Station)> {
        let found = || {
            let owner = self.ask("ADDRESSES", &self.maps.addresses, key)?;
            let port: Port = self.ask("PORTS", &self.maps.ports, &PortKey { ifindex: owner.ifindex })?;
            let at = |vid| StationKey { bridge: key.bridge, vid, mac: port.mac };
            let station = self.ask("FDB", &self.maps.stations, &at(key.vid));
            let station: Station = station.or_else(|| self.ask("FDB", &self.maps.stations, &at(vid)))?;
            (station.ifindex == owner.ifindex).then_some((port, station))
        };
        let found = found();
        let said = found.map_or_else(
            || "nobody that is known".to_owned(),
            |(port, station)| format!("{}, behind {}", mac::format(port.mac), self.name(station.ifindex)),
        );
        self.note(Asked::Resident, format!("who has {}: {said}", IpAddr::from(key.address)));
        found
    }

    fn link_local(&self, key: &PortKey) -> Option<LinkLocal> {
        let found = |chosen: &LinkLocal| {
            let seconds = self.times.boot.saturating_sub(chosen.since) / 1_000_000_000;
            format!("{}, chosen {seconds} s ago", IpAddr::from(chosen.address))
        };
        let asked = (Asked::Owner, "LINK_LOCALS");
        self.look(asked, &self.maps.link_locals, (key, self.name(key.ifindex)), found)
    }

    fn choose_link_local(&self, key: &PortKey, value: &LinkLocal) -> bool {
        let (name, address) = (self.name(key.ifindex), IpAddr::from(value.address));
        self.note(Asked::Owner, format!("LINK_LOCALS[{name}] would be written: {address}"));
        true
    }

    fn forget_link_local(&self, key: &PortKey) {
        let name = self.name(key.ifindex);
        self.note(Asked::Owner, format!("LINK_LOCALS[{name}] would be removed: a neighbour has the address"));
    }

    fn is_tagged(&self, key: &PortKey, vid: u16) -> bool {
        let asked = if key.ifindex == self.here { Asked::TaggedHere } else { Asked::Tagged };
        let has = self.ask("TAGGED", &self.maps.tagged, key).is_some_and(|vlans: TaggedVlans| vlans.has(vid));
        let is = if has { "in" } else { "not in" };
        self.note(asked, format!("TAGGED[{}]: {is} VLAN {vid}", self.name(key.ifindex)));
        has
    }

    fn member(&self, key: &MemberKey) -> Option<Member> {
        let member = self.ask("MEMBERS", &self.maps.members, key)?;
        if member.ifindex != 0 && member.ifindex != self.here {
            self.note(Asked::Member, format!("member {}", self.name(member.ifindex)));
        }
        Some(member)
    }

    fn repeat(&self, times: u32, mut body: impl FnMut(u32) -> bool) {
        let _ = (0..times).all(&mut body);
    }

    fn boot_time(&self) -> u64 {
        self.times.boot
    }

    fn mapping(&self, key: &MappingKey) -> Option<Mapping> {
        self.mapping_of(key)
    }

    fn is_local(&self, address: &Address) -> bool {
        let is_local = self.is_in_locals(address);
        let what = if is_local { "the node's" } else { "not the node's" };
        self.note(Asked::Translation, format!("LOCALS: {} is {what}", IpAddr::from(*address)));
        is_local
    }

    fn follow(
        &self,
        mine: &TupleKey,
        other: &mut TupleKey,
        _packet: Option<&Followed>,
        judge: impl FnOnce(Direction, Direction) -> Fate,
    ) -> Option<Fate> {
        let mine = self.flow(mine)?;
        (other.destination, other.destination_port) = (mine.becomes.source, mine.becomes.source_port);
        let other = self.flow(other)?;
        (mine.begun == other.begun).then(|| judge(mine.direction(), other.direction()))
    }

    fn becomes(&self, key: &TupleKey) -> Option<(TupleKey, u32)> {
        self.flow(key).map(|flow| (flow.becomes, flow.holder))
    }

    fn share(&self, slot: u32) -> Option<Share> {
        self.share_of(slot)
    }

    fn begin_openings(&self, _slot: u32, _side: Side, _due: u64) {}

    fn charge_opening(&self, _slot: u32, _side: Side, _nanoseconds: u64) {}

    fn answers_neighbor(&self, flow: &FlowKey, source: Address) -> bool {
        self.flow(&TupleKey::of(flow, source)).is_some_and(|flow| flow.flags & TRANSLATION_NEAR != 0)
    }

    fn masquerade(&self, key: &AddressKey) -> Option<Masquerade> {
        let address = IpAddr::from(key.address).to_string();
        let found = |_: &Masquerade| "masqueraded".to_owned();
        self.look((Asked::Translation, "MASQUERADES"), &self.maps.masquerades, (key, address), found)
    }

    fn outlet(&self, key: &AddressKey) -> Option<Outlet> {
        let found = |outlet: &Outlet| format!("ports without {} to {}", outlet.low, outlet.high);
        let name = format!("{}, {}", self.name(key.bridge), IpAddr::from(key.address));
        self.look((Asked::Outlet, "OUTLETS"), &self.maps.outlets, (key, name), found)
    }

    fn source(&self, key: &SourceKey) -> Option<Address> {
        let source = self.maps.sources.get(&Key::new(SOURCE_BITS, *key), 0).ok();
        let what = source.map_or("no address".to_owned(), |source| IpAddr::from(source).to_string());
        let name = self.name(key.ifindex);
        self.note(
            Asked::Outlet,
            format!("what leaves by {name} to {} gets {what}", IpAddr::from(key.address)),
        );
        source
    }

    fn reverse_path(&self, key: &PortKey) -> Option<ReversePath> {
        let name = self.name(key.ifindex);
        self.look((Asked::Translation, "REVERSE_PATHS"), &self.maps.reverse_paths, (key, name), filter_name)
    }

    /// Connected sockets are not looked for: the ports that they have are none that would be tried.
    fn has_socket(&self, tuple: &TupleKey) -> bool {
        self.listens(tuple)
    }

    /// Says what would happen, as every change below.
    fn insert_flow(&self, key: &TupleKey, _value: &Translation) -> Inserted {
        match self.flow(key) {
            Some(_) => Inserted::Exists,
            None => Inserted::New,
        }
    }

    fn replace_flow(&self, key: &TupleKey, _value: &Translation) -> bool {
        self.note(Asked::Translation, format!("FLOWS[{}] would be written", tuple(key)));
        true
    }

    fn forget_flow(&self, _key: &TupleKey) {}

    fn remember_fragment(&self, identification: [u16; 2], _key: &TupleKey, _becomes: &TupleKey) {
        let number = datagram(identification);
        self.note(Asked::Translation, format!("FRAGMENTS would have datagram {number}"));
    }

    fn fragment(&self, key: &FragmentKey) -> Option<FragmentTranslation> {
        let (from, to) = (IpAddr::from(key.source), IpAddr::from(key.destination));
        let called = format!("datagram {} from {from} to {to}", datagram(key.identification));
        let found = |first: &FragmentTranslation| {
            format!("{} to {}", IpAddr::from(first.source), IpAddr::from(first.destination))
        };
        self.look((Asked::Translation, "FRAGMENTS"), &self.maps.fragments, (key, called), found)
    }

    /// The way of the node's own packets: the programs ask as if the packet came from its bridge, so a policy for
    /// what comes from there is not seen here. What is masqueraded is asked for as they ask.
    fn route(&self, query: &RouteQuery) -> Result<Route, Unrouted> {
        let (from, to) = (IpAddr::from(query.source), IpAddr::from(query.destination));
        let is_nodes = self.is_in_locals(&query.source);
        let hop = self.hop(from, to, (!is_nodes).then_some(query.from)).unwrap_or_else(|error| {
            self.failed.set(Some(error.into()));
            None
        });
        let (hop, mtu) = hop.ok_or(Unrouted::NoRoute)?;
        let said = format!("by {} to {}, mtu {mtu}", self.name(hop.index), hop.gateway.unwrap_or(to));
        self.note(Asked::Route, format!("route from {from} to {to}: {said}"));
        if u32::from(query.bytes) > mtu {
            return Err(Unrouted::TooBig(u16::try_from(mtu).unwrap_or(u16::MAX)));
        }
        Ok(Route { ifindex: hop.index, next_hop: hop.gateway.unwrap_or(to).into() })
    }

    fn policer(&self, slot: u32) -> Option<Policer> {
        let policer = self.maps.policers.get(&slot, 0).ok()?;
        let ahead = policer.due.saturating_sub(self.times.monotonic) / 1000;
        let allowed = policer.tolerance / 1000;
        self.note(Asked::Policer, format!("{ahead} of {allowed} microseconds are not paid for yet"));
        Some(policer)
    }

    fn is_limited(&self, key: &SubnetKey) -> bool {
        let limited =
            self.maps.subnets.get(&Key::new(SUBNET_BITS, *key), 0).map_or(true, |limited| limited != 0);
        let what = if limited { "limited" } else { "not limited" };
        self.note(Asked::Policer, format!("what goes to {} is {what}", IpAddr::from(key.address)));
        limited
    }

    fn now(&self) -> u64 {
        self.times.monotonic
    }

    fn begin(&self, _slot: u32, _due: u64) {}

    fn charge(&self, _slot: u32, _nanoseconds: u64) {}

    fn count(&self, _slot: u32, _lane: Lane, _bytes: u32) {}

    fn count_drop(&self, _key: &DropKey, _bytes: u32) {}
}

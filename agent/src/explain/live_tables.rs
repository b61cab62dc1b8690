//! The kernel's maps as [`Tables`], read and never written, and everything that was asked of them.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fmt::Debug;
use std::net::{IpAddr, SocketAddr};

use aya::Pod;
use aya::maps::lpm_trie::Key;
use aya::maps::{HashMap as BpfHashMap, MapData};
use shunt_dataplane::Tables;
use shunt_dataplane::abi::fragment::{FragmentKey, FragmentTranslation};
use shunt_dataplane::abi::learning::{Learned, Learning};
use shunt_dataplane::abi::policer::{Policer, SUBNET_BITS, SubnetKey};
use shunt_dataplane::abi::translation::{
    LocalKey, Mapping, MappingKey, Masquerade, Outlet, Translation, TupleKey,
};
use shunt_dataplane::abi::vlan::{Member, MemberKey, TaggedVlans};
use shunt_dataplane::abi::{AddressKey, DropKey, FlowKey, Owner, Port, PortKey, Station, StationKey};
use shunt_dataplane::nat::connection::{Direction, Shown};
use shunt_dataplane::stages::learn::Heard;
use shunt_dataplane::tables::{Inserted, Lane, Route, RouteQuery};
use shunt_dataplane::wire::address::Address;
use shunt_netlink::link::{Selector, link};
use shunt_netlink::route::{NextHop, next_hop};
use shunt_netlink::sock_diag::listeners;
use shunt_netlink::{Connection, NetlinkError};

use super::asked::Asked;
use super::lookup_error::LookupError;
use crate::bpf::maps::{Maps, lookup};
use crate::mac;

/// The maps for one program on one interface.
pub struct LiveTables<'a> {
    maps: &'a Maps,
    names: &'a HashMap<u32, String>,
    here: u32,
    times: Times,
    routes: RefCell<&'a mut Connection>,
    asked: RefCell<Vec<(Asked, String)>>,
    failed: Cell<Option<LookupError>>,
}

/// What the programs' clocks say, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// `CLOCK_BOOTTIME`.
    pub boot: u64,
    /// `CLOCK_MONOTONIC`.
    pub monotonic: u64,
}

impl<'a> LiveTables<'a> {
    /// For a program on the interface `here`; `names` are those of interfaces.
    pub fn new(
        maps: &'a Maps,
        names: &'a HashMap<u32, String>,
        here: u32,
        times: Times,
        routes: &'a mut Connection,
    ) -> Self {
        let (routes, asked) = (RefCell::new(routes), RefCell::default());
        Self { maps, names, here, times, routes, asked, failed: Cell::new(None) }
    }

    /// What was asked, in its order, with what was found.
    ///
    /// # Errors
    /// The first that could not be read.
    pub fn into_asked(self) -> Result<Vec<(Asked, String)>, LookupError> {
        match self.failed.into_inner() {
            Some(error) => Err(error),
            None => Ok(self.asked.into_inner()),
        }
    }

    /// An interface's name.
    pub fn name(&self, ifindex: u32) -> String {
        self.names.get(&ifindex).cloned().unwrap_or_else(|| format!("ifindex {ifindex}"))
    }

    fn note(&self, asked: Asked, text: String) {
        self.asked.borrow_mut().push((asked, text));
    }

    fn look<K: Pod, V: Pod + Debug>(
        &self,
        (asked, name): (Asked, &'static str),
        map: &BpfHashMap<MapData, K, V>,
        (key, called): (&K, String),
        found: impl FnOnce(&V) -> String,
    ) -> Option<V> {
        let value = self.ask(name, map, key);
        let said = value.as_ref().map_or_else(|| "nothing".to_owned(), found);
        self.note(asked, format!("{name}[{called}]: {said}"));
        value
    }

    fn ask<K: Pod, V: Pod>(&self, name: &'static str, map: &BpfHashMap<MapData, K, V>, key: &K) -> Option<V> {
        lookup(map, key).unwrap_or_else(|source| {
            self.failed.set(Some(LookupError::Map { map: name, source }));
            None
        })
    }
}

impl Tables for LiveTables<'_> {
    fn port(&self, key: &PortKey) -> Option<Port> {
        let asked = if key.ifindex == self.here { Asked::Here } else { Asked::Port };
        let found = |port: &Port| {
            let Port { flags, asks, vid, .. } = *port;
            format!("{}, flags {flags:#x}, asks {asks}, vid {vid}", self.name(port.bridge))
        };
        self.look((asked, "PORTS"), &self.maps.ports, (key, self.name(key.ifindex)), found)
    }

    fn station(&self, key: &StationKey) -> Option<Station> {
        let called = format!("{}, {}", self.name(key.bridge), mac::format(key.mac));
        let found = |station: &Station| {
            let Station { ifindex, mtu, flags, .. } = *station;
            format!("behind {}, mtu {mtu}, flags {flags:#x}", self.name(ifindex))
        };
        self.look((Asked::Station, "FDB"), &self.maps.stations, (key, called), found)
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

    fn note_heard(&self, _: &PortKey, _: Heard) {}

    /// The journeys of the stack are explained: a driver's says nothing that they would not.
    fn takes(&self, _: u32) -> bool {
        false
    }

    fn owner(&self, key: &AddressKey) -> Option<Owner> {
        let called = format!("{}, {}", self.name(key.bridge), ip(key.address));
        let found = |owner: &Owner| format!("behind {}", self.name(owner.ifindex));
        self.look((Asked::Owner, "ADDRESSES"), &self.maps.addresses, (key, called), found)
    }

    fn resident(&self, key: &AddressKey, vid: u16) -> Option<(Port, Station)> {
        let found = || {
            let owner = self.ask("ADDRESSES", &self.maps.addresses, key)?;
            let port: Port = self.ask("PORTS", &self.maps.ports, &PortKey { ifindex: owner.ifindex })?;
            let station = StationKey { bridge: key.bridge, vid, mac: port.mac };
            let station: Station = self.ask("FDB", &self.maps.stations, &station)?;
            (station.ifindex == owner.ifindex).then_some((port, station))
        };
        let found = found();
        let said = found.map_or_else(
            || "nobody that is known".to_owned(),
            |(port, station)| format!("{}, behind {}", mac::format(port.mac), self.name(station.ifindex)),
        );
        self.note(Asked::Resident, format!("who has {}: {said}", ip(key.address)));
        found
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

    fn is_kernel_flow(&self, key: &FlowKey) -> bool {
        let called = format!(
            "{} {}:{} and {}:{}",
            key.protocol,
            ip(key.low),
            key.low_port.number(),
            ip(key.high),
            key.high_port.number()
        );
        let asked = (Asked::KernelFlow, "KERNEL_FLOWS");
        self.look(asked, &self.maps.kernel_flows, (key, called), |_| "the kernel's".to_owned()).is_some()
    }

    fn note_kernel_flow(&self, _key: &FlowKey) {
        self.note(Asked::KernelFlow, "its flow would be noted as the kernel's".to_owned());
    }

    fn ask_from_now_on(&self, _key: &PortKey) {}

    fn boot_time(&self) -> u64 {
        self.times.boot
    }

    fn mapping(&self, key: &MappingKey) -> Option<Mapping> {
        let called = format!("{}:{}/{}", ip(key.address), key.port.number(), key.protocol);
        let found = |mapping: &Mapping| {
            format!("{} or {}, port {}", ip(mapping.v4), ip(mapping.v6), mapping.port.number())
        };
        self.look((Asked::Translation, "MAPPINGS"), &self.maps.mappings, (key, called), found)
    }

    fn is_local(&self, address: &Address) -> bool {
        let key = LocalKey { address: *address };
        let asked = (Asked::Translation, "LOCALS");
        self.look(asked, &self.maps.locals, (&key, ip(*address).to_string()), |_| "the node's".to_owned())
            .is_some()
    }

    fn follow<R>(
        &self,
        mine: &TupleKey,
        other: &mut TupleKey,
        _bytes: u32,
        judge: impl FnOnce(Direction, Direction) -> (R, Option<Direction>),
    ) -> Option<R> {
        let mine = self.flow(mine)?;
        other.destination_port = mine.becomes.source_port;
        let other = self.flow(other)?;
        let direction = |flow: &Translation| Direction { shown: Shown(flow.shown), touched: flow.touched };
        (mine.begun == other.begun).then(|| judge(direction(&mine), direction(&other)).0)
    }

    fn becomes(&self, key: &TupleKey) -> Option<(TupleKey, u32)> {
        self.flow(key).map(|flow| (flow.becomes, flow.holder))
    }

    fn masquerade(&self, key: &AddressKey) -> Option<Masquerade> {
        let address = ip(key.address).to_string();
        let found = |_: &Masquerade| "masqueraded".to_owned();
        self.look((Asked::Translation, "MASQUERADES"), &self.maps.masquerades, (key, address), found)
    }

    fn outlet(&self, key: &PortKey) -> Option<Outlet> {
        let found = |outlet: &Outlet| format!("{} and {}", ip(outlet.v4), ip(outlet.v6));
        let name = self.name(key.ifindex);
        self.look((Asked::Outlet, "OUTLETS"), &self.maps.outlets, (key, name), found)
    }

    /// Connected sockets are not looked for: the ports that they have are none that would be tried.
    fn is_spoken_for(&self, tuple: &TupleKey) -> bool {
        let sockets = listeners(tuple.protocol).unwrap_or_else(|error| {
            self.failed.set(Some(error.into()));
            Vec::new()
        });
        let takes = |socket: &SocketAddr| {
            let ip = socket.ip().to_canonical();
            socket.port() == tuple.source_port.number()
                && (ip.is_unspecified() || ip == self::ip(tuple.source))
        };
        sockets.iter().any(takes)
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
        let number = shown(identification);
        self.note(Asked::Translation, format!("FRAGMENTS would have datagram {number}"));
    }

    fn fragment(&self, key: &FragmentKey) -> Option<FragmentTranslation> {
        let (from, to) = (ip(key.source), ip(key.destination));
        let called = format!("datagram {} from {from} to {to}", shown(key.identification));
        let found =
            |first: &FragmentTranslation| format!("{} to {}", ip(first.source), ip(first.destination));
        self.look((Asked::Translation, "FRAGMENTS"), &self.maps.fragments, (key, called), found)
    }

    /// The way of the node's own packets: the programs ask as if the packet came from its bridge, so a policy for
    /// what comes from there is not seen here. What is masqueraded is asked for as they ask.
    fn route(&self, query: &RouteQuery) -> Option<Route> {
        let (from, to) = (ip(query.source), ip(query.destination));
        let is_nodes = self.ask("LOCALS", &self.maps.locals, &LocalKey { address: query.source }).is_some();
        let (hop, mtu) = self.hop(from, to, (!is_nodes).then_some(query.from)).unwrap_or_else(|error| {
            self.failed.set(Some(error.into()));
            None
        })?;
        let said = format!("by {} to {}, mtu {mtu}", self.name(hop.index), hop.gateway.unwrap_or(to));
        self.note(Asked::Route, format!("route from {from} to {to}: {said}"));
        (u32::from(query.bytes) <= mtu)
            .then_some(Route { ifindex: hop.index, next_hop: hop.gateway.unwrap_or(to).into() })
    }

    fn policer(&self, slot: u32) -> Option<Policer> {
        let policer = self.maps.policers.get(&slot, 0).ok()?;
        let ahead = policer.due.saturating_sub(self.times.monotonic) / 1000;
        let allowed = policer.tolerance / 1000;
        self.note(Asked::Policer, format!("{ahead} µs of {allowed} µs are not paid for yet"));
        Some(policer)
    }

    fn is_limited(&self, key: &SubnetKey) -> bool {
        let limited =
            self.maps.subnets.get(&Key::new(SUBNET_BITS, *key), 0).map_or(true, |limited| limited != 0);
        let what = if limited { "limited" } else { "not limited" };
        self.note(Asked::Policer, format!("what goes to {} is {what}", ip(key.address)));
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

impl LiveTables<'_> {
    /// The next hop on the way, and the largest packet that it takes.
    fn hop(&self, from: IpAddr, to: IpAddr, by: Option<u32>) -> Result<Option<(NextHop, u32)>, NetlinkError> {
        let mut routes = self.routes.borrow_mut();
        let asked = routes.get(next_hop(from, to, by));
        // The kernel refuses where there is no route, or one that says no.
        let Some(hop) = asked.or_else(|error| if error.errno().is_some() { Ok(None) } else { Err(error) })?
        else {
            self.note(Asked::Route, format!("no route from {from} to {to}"));
            return Ok(None);
        };
        let link = routes.get(link(Selector::Index(hop.index)))?;
        Ok(link.map(|link| (hop, hop.mtu.unwrap_or(link.mtu))))
    }

    fn flow(&self, key: &TupleKey) -> Option<Translation> {
        let found = |flow: &Translation| tuple(&flow.becomes);
        self.look((Asked::Translation, "FLOWS"), &self.maps.flows, (key, tuple(key)), found)
    }
}

fn tuple(key: &TupleKey) -> String {
    let (source, destination) = (ip(key.source), ip(key.destination));
    let (from, to) = (key.source_port.number(), key.destination_port.number());
    format!("{}:{from} to {}:{to}/{}", source, destination, key.protocol)
}

/// A datagram's identification: two half words in network order.
fn shown([high, low]: [u16; 2]) -> String {
    format!("{:04x}{:04x}", u16::from_be(high), u16::from_be(low))
}

fn ip(address: Address) -> IpAddr {
    IpAddr::from(address.octets()).to_canonical()
}

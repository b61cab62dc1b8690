//! The kernel's maps as [`shunt_dataplane::Tables`], read and never written, with a record of every look-up.

mod accepted_flows;
mod aliases;
mod asides;
mod kernel_flows;
mod tables;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fmt::Debug;
use std::net::IpAddr;

use aya::Pod;
use aya::maps::lpm_trie::Key;
use aya::maps::{HashMap as BpfHashMap, MapData};
use shunt_dataplane::abi::translation::{LOCAL_BITS, LocalKey, Translation, TupleKey};
use shunt_dataplane::abi::{FlowKey, REVERSE_PATH_NONE, REVERSE_PATH_STRICT, ReversePath};
use shunt_dataplane::wire::address::Address;
use shunt_netlink::link::{Selector, link};
use shunt_netlink::route::{NextHop, next_hop};
use shunt_netlink::{Connection, NetlinkError};

use super::asked::Asked;
use super::lookup_error::LookupError;
use crate::datapath::maps::{Maps, is_absent, lookup};

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

    /// Whether an address is in a prefix of `LOCALS`.
    fn is_in_locals(&self, address: &Address) -> bool {
        match self.maps.locals.get(&Key::new(LOCAL_BITS, LocalKey { address: *address }), 0) {
            Ok(_) => true,
            Err(error) if is_absent(&error) => false,
            Err(source) => {
                self.failed.set(Some(LookupError::Map { map: "LOCALS", source }));
                false
            }
        }
    }

    fn ask<K: Pod, V: Pod>(&self, name: &'static str, map: &BpfHashMap<MapData, K, V>, key: &K) -> Option<V> {
        lookup(map, key).unwrap_or_else(|source| {
            self.failed.set(Some(LookupError::Map { map: name, source }));
            None
        })
    }
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
        // Most are in one of both: nothing is said of the one where it is not.
        match self.ask("ASSURED", &self.maps.assured, key) {
            Some(flow) => {
                self.note(Asked::Translation, format!("ASSURED[{}]: {}", tuple(key), found(&flow)));
                Some(flow)
            }
            None => self.look((Asked::Translation, "FLOWS"), &self.maps.flows, (key, tuple(key)), found),
        }
    }
}

fn tuple(key: &TupleKey) -> String {
    let (source, destination) = (IpAddr::from(key.source), IpAddr::from(key.destination));
    let (from, to) = (key.source_port.number(), key.destination_port.number());
    format!("{}:{from} to {}:{to}/{}", source, destination, key.protocol)
}

fn flow_name(key: &FlowKey) -> String {
    let [low, high] = [key.low_port, key.high_port].map(|port| port.number());
    format!("{} {}:{low} and {}:{high}", key.protocol, IpAddr::from(key.low), IpAddr::from(key.high))
}

/// A datagram's identification: two half words in network order.
fn datagram([high, low]: [u16; 2]) -> String {
    format!("{:04x}{:04x}", u16::from_be(high), u16::from_be(low))
}

/// The kernel's filter of sources, as ip-sysctl(`rp_filter`) calls it.
fn filter_name(path: &ReversePath) -> String {
    let name = match path.filter {
        REVERSE_PATH_NONE => "none",
        REVERSE_PATH_STRICT => "strict",
        _ => "loose",
    };
    name.to_owned()
}

//! What the kernel says, without the agent: maps by their pins, filters by `tc`.

use std::collections::BTreeMap;

use aya::Pod;
use aya::maps::{HashMap, Map, MapData};
use nix::time::{ClockId, clock_gettime};
use shunt_agent_api::BridgePort;
use shunt_dataplane::abi::translation::{Outlet, TRANSLATION_OPENER, Translation, TupleKey};
use shunt_dataplane::abi::{AddressKey, FlowKey, KernelFlow, Owner, Port, PortKey, Station, StationKey};
use shunt_dataplane::nat::connection::Shown;
use shunt_dataplane::wire::address::{Address, Mac};

use crate::rig::Rig;

fn map<K: Pod, V: Pod>(rig: &Rig, name: &str) -> HashMap<MapData, K, V> {
    let data = MapData::from_pin(rig.pin("maps").join(name)).unwrap();
    HashMap::try_from(Map::from_map_data(data).unwrap()).unwrap()
}

pub(crate) fn port(rig: &Rig, ifindex: u32) -> Option<Port> {
    map::<PortKey, Port>(rig, "PORTS").get(&PortKey { ifindex }, 0).ok()
}

pub(crate) fn station(rig: &Rig, bridge: u32, mac: [u8; 6]) -> Option<Station> {
    map::<StationKey, Station>(rig, "FDB").get(&StationKey { bridge, vid: 0, mac: Mac::new(mac) }, 0).ok()
}

/// The MAC address that the rig gives to its containers.
pub(crate) fn container_mac(number: u8) -> [u8; 6] {
    [2, 0, 0, 0, 0, number]
}

pub(crate) fn remove_station(rig: &Rig, bridge: u32, mac: [u8; 6]) {
    map::<StationKey, Station>(rig, "FDB")
        .remove(&StationKey { bridge, vid: 0, mac: Mac::new(mac) })
        .unwrap();
}

/// The node's, by that bridge.
pub(crate) fn remove_own_station(rig: &Rig, bridge: u32) {
    let mut stations = map::<StationKey, Station>(rig, "FDB");
    let own = stations.iter().map(Result::unwrap).find(|(_, station)| station.ifindex == bridge).unwrap().0;
    stations.remove(&own).unwrap();
}

pub(crate) fn remove_port(rig: &Rig, ifindex: u32) {
    map::<PortKey, Port>(rig, "PORTS").remove(&PortKey { ifindex }).unwrap();
}

pub(crate) fn remove_addresses(rig: &Rig) {
    let mut addresses = map::<AddressKey, Owner>(rig, "ADDRESSES");
    for key in addresses.keys().collect::<Result<Vec<_>, _>>().unwrap() {
        addresses.remove(&key).unwrap();
    }
}

/// The interfaces that masquerade.
pub(crate) fn outlets(rig: &Rig) -> usize {
    map::<AddressKey, Outlet>(rig, "OUTLETS").keys().count()
}

pub(crate) fn remove_outlets(rig: &Rig) {
    let mut outlets = map::<AddressKey, Outlet>(rig, "OUTLETS");
    for key in outlets.keys().collect::<Result<Vec<_>, _>>().unwrap() {
        outlets.remove(&key).unwrap();
    }
}

pub(crate) fn stations(rig: &Rig) -> usize {
    map::<StationKey, Station>(rig, "FDB").keys().count()
}

pub(crate) fn kernel_flows(rig: &Rig) -> Vec<FlowKey> {
    map::<FlowKey, KernelFlow>(rig, "KERNEL_FLOWS").keys().map(Result::unwrap).collect()
}

/// Writes so many connections with a port's first host port, as the programs do: UDP, answered, and heard of just now.
pub(crate) fn add_connections(rig: &Rig, port: &BridgePort, count: u32) {
    let mapping = &port.mappings[0];
    let now = std::time::Duration::from(clock_gettime(ClockId::CLOCK_BOOTTIME).unwrap()).as_nanos() as u64;
    let mut flows = map::<TupleKey, Translation>(rig, "FLOWS");
    for number in 0..count {
        let [_, high, middle, low] = number.to_be_bytes();
        let request = TupleKey {
            source: Address::from(std::net::IpAddr::from([198, 18 + high, middle, low])),
            source_port: 5000.into(),
            destination: Address::from(std::net::IpAddr::from([10, 88, 0, 1])),
            destination_port: mapping.host_port.into(),
            protocol: 17,
            ..TupleKey::default()
        };
        let becomes = TupleKey {
            domain: port.bridge.index,
            destination: port.ips[0].into(),
            destination_port: mapping.container_port.into(),
            ..request
        };
        let half = |becomes, flags| Translation {
            becomes,
            shown: Shown::SENT.0,
            touched: now,
            begun: now,
            packets: 1,
            bytes: 60,
            holder: 0,
            flags,
            acknowledged: 0,
            end: 0,
        };
        flows.insert(request, half(becomes, TRANSLATION_OPENER), 0).unwrap();
        let answer = becomes.reversed(becomes.domain);
        flows.insert(answer, half(request.reversed(0), 0), 0).unwrap();
    }
}

/// Both entries of each connection.
pub(crate) fn flows(rig: &Rig) -> BTreeMap<TupleKey, Translation> {
    map::<TupleKey, Translation>(rig, "FLOWS").iter().map(Result::unwrap).collect()
}

/// How many connections have both of their entries: a table that is nearly full has forgotten some.
pub(crate) fn connections(rig: &Rig) -> usize {
    let entries = flows(rig);
    let openers = entries.values().filter(|flow| flow.flags & TRANSLATION_OPENER != 0);
    openers.filter(|flow| entries.contains_key(&flow.becomes.reversed(flow.becomes.domain))).count()
}

pub(crate) fn assert_maps_are_empty(rig: &Rig) {
    assert_eq!(map::<PortKey, Port>(rig, "PORTS").keys().count(), 0);
    assert_eq!(stations(rig), 0);
    assert_eq!(map::<AddressKey, Owner>(rig, "ADDRESSES").keys().count(), 0);
}

/// The filters of a direction of an interface, as `tc` prints them.
pub(crate) fn filters(rig: &Rig, ifname: &str, direction: &str) -> String {
    rig.node.command("tc", &["filter", "show", "dev", ifname, direction]).unwrap()
}

/// Puts somebody else's filter, which passes everything on, onto an interface that has no clsact yet.
pub(crate) fn add_foreign_filter(rig: &Rig, ifname: &str, direction: &str, place: &[&str]) {
    rig.node.command("tc", &["qdisc", "add", "dev", ifname, "clsact"]).unwrap();
    let filter = ["filter", "add", "dev", ifname, direction];
    let passes = ["bpf", "bytecode", "1,6 0 0 4294967295"];
    rig.node.command("tc", &[&filter[..], place, &passes[..]].concat()).unwrap();
}

/// Ids of the programs on tcx in a direction of an interface.
pub(crate) fn tcx(rig: &Rig, ifname: &str, direction: aya::programs::TcAttachType) -> Vec<u32> {
    let query = || aya::programs::SchedClassifier::query_tcx(ifname, direction);
    let programs = rig.node.enter(query).unwrap().map(|(_, programs)| programs).unwrap_or_default();
    programs.iter().map(aya::programs::ProgramInfo::id).collect()
}

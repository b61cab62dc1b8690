//! The links that are shunt's, with their addresses; of all others only how many there are of each kind.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::json;
use shunt_agent_api::BRIDGE_MARK;
use shunt_dataplane::wire::address::Mac;
use shunt_netlink::address::addresses;
use shunt_netlink::link::{Link, links};
use shunt_netlink::{AddressFamily, Connection};

use super::part::{Had, Job, Lack};
use super::places::Places;
use crate::cluster;
use crate::config::Options;
use crate::mac;
use crate::registry::PORT_MARK;
use crate::state::recorded;

pub(super) fn jobs(places: &Places) -> Vec<Job> {
    let places = places.clone();
    vec![Job::new("links.json", move |_| shown(&named(&places)))]
}

/// Links by name that are shunt's, whatever their marks: those of the attachments and the uplinks.
fn named(places: &Places) -> BTreeSet<String> {
    let ports = recorded(&places.state_dir).map(|recorded| recorded.ports).unwrap_or_default();
    let of_ports = ports.into_iter().flat_map(|port| [port.host.name, port.bridge.name]);
    let (options, _) = Options::read_usable(Some(&places.config));
    of_ports.chain(options.uplinks.into_keys()).collect()
}

fn shown(named: &BTreeSet<String>) -> Result<Had, Lack> {
    let mut connection = Connection::open().map_err(|error| Lack::Failed(error.to_string()))?;
    let links = connection.list(links()).map_err(|error| Lack::Failed(error.to_string()))?;
    let addresses = connection
        .list(addresses(0, AddressFamily::Unspec))
        .map_err(|error| Lack::Failed(error.to_string()))?;
    let ours = ours(&links, named);
    let (shown, others): (Vec<_>, Vec<_>) = links.iter().partition(|link| ours.contains(&link.index));
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for link in others {
        *kinds.entry(link.kind.as_deref().unwrap_or("without a kind")).or_default() += 1;
    }
    let of_link = |index| {
        let of_link = addresses.iter().filter(move |address| address.index == index);
        of_link.map(|address| address.prefix.to_string()).collect::<Vec<_>>()
    };
    let shown: Vec<_> = shown.into_iter().map(|link| ShownLink::of(link, of_link(link.index))).collect();
    Had::json(json!({ "links": shown, "others": kinds }))
}

/// The links that are shunt's, and the ports of its bridges.
fn ours(links: &[Link], named: &BTreeSet<String>) -> BTreeSet<u32> {
    let is_marked = |link: &Link| {
        let alias = link.alias.as_deref().unwrap_or_default();
        alias == BRIDGE_MARK || alias.starts_with(PORT_MARK) || cluster::removal::is_device(link)
    };
    let first = links.iter().filter(|link| is_marked(link) || named.contains(&link.name));
    let mut ours: BTreeSet<_> = first.map(|link| link.index).collect();
    let ports = links.iter().filter(|link| link.master.is_some_and(|master| ours.contains(&master)));
    ours.extend(ports.map(|link| link.index).collect::<Vec<_>>());
    ours
}

#[derive(Serialize)]
struct ShownLink {
    index: u32,
    name: String,
    kind: Option<String>,
    mac: Option<String>,
    mtu: u32,
    master: Option<u32>,
    up: bool,
    carrier: bool,
    operational: bool,
    promiscuous: bool,
    blocked: bool,
    vlan: Option<u16>,
    /// Whose it is, as its mark says.
    #[serde(rename = "key")]
    owner: Option<String>,
    addresses: Vec<String>,
}

impl ShownLink {
    fn of(link: &Link, addresses: Vec<String>) -> Self {
        Self {
            index: link.index,
            name: link.name.clone(),
            kind: link.kind.clone(),
            mac: link.mac.map(|mac| mac::format(Mac::new(mac))),
            mtu: link.mtu,
            master: link.master,
            up: link.up,
            carrier: link.carrier,
            operational: link.operational,
            promiscuous: link.promiscuous,
            blocked: link.blocked,
            vlan: link.vlan,
            owner: link.alias.as_deref().and_then(|alias| alias.strip_prefix(PORT_MARK)).map(str::to_owned),
            addresses,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marked_links_and_ports_of_marked_bridges_are_shunts_and_others_are_not() {
        let link = |index, name: &str, alias: Option<&str>, master| Link {
            index,
            alias: alias.map(str::to_owned),
            master,
            ..Link::named(name)
        };
        let links = [
            link(1, "lo", None, None),
            link(2, "cni0", Some(BRIDGE_MARK), None),
            link(3, "veth1", Some("shunt:net/c/eth0"), None),
            link(4, "tap0", None, Some(2)),
            link(5, "docker0", Some("somebody's"), None),
            link(6, "veth9", None, Some(5)),
            link(7, "eth1", None, None),
        ];
        let named = BTreeSet::from(["eth1".to_owned()]);
        assert_eq!(ours(&links, &named).into_iter().collect::<Vec<_>>(), [2, 3, 4, 7]);
    }
}

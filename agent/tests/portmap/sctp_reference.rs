//! Associations by host ports of ours and by the reference portmap's, from outside and from the node itself: what each end
//! gets is the same, byte for byte.

use std::net::IpAddr;
use std::path::Path;

use serde_json::json;
use shunt_lab::{Container, Lab, Lacking, Node, skip};

use crate::association::associate;
use crate::sctp::{Packet, Raw};
use crate::stage::{NODE, OUTSIDE, address, give, join, mapping};

/// Host ports, and where they lead.
const PORTS: [(u16, u16); 2] = [(8132, 7132), (9899, 9899)];

/// What each end of the associations gets, and from whom.
fn heard(is_reference: bool) -> Vec<(Packet, IpAddr)> {
    let lab = Lab::new().unwrap();
    let node = if is_reference { Node::bare(&lab, "node") } else { Node::start(&lab, "node") }.unwrap();
    let outside = lab.namespace("outside").unwrap();
    join(&node, "up0", &outside, "eth0");
    for (namespace, ifname, addresses) in [(node.namespace(), "up0", NODE), (&outside, "eth0", OUTSIDE)] {
        for (address, length) in addresses.into_iter().zip(["24", "64"]) {
            give(namespace, ifname, &format!("{address}/{length}"));
        }
    }
    let subnets = ["10.77.0.0/24", "fd77::/64"];
    let wanted = json!({ "portMappings": PORTS.map(|(host, inner)| mapping(host, inner, "sctp")) });
    let network = if is_reference {
        node.reference_network("pods", "cni0", &subnets).then(
            json!({ "type": "portmap", "capabilities": { "portMappings": true }, "runtimeConfig": wanted }),
        )
    } else {
        node.network("pods", "cni0", &subnets).with("runtimeConfig", wanted)
    };
    let container = Container::create(&lab, "server").unwrap();
    container.namespace().sysctl("net/ipv6/conf/default/accept_dad", "0").unwrap();
    let _attachment = network.add(node.namespace(), &container).unwrap();
    node.settle().unwrap();
    let mut heard = Vec::new();
    for (node_address, outside_address) in NODE.map(address).into_iter().zip(OUTSIDE.map(address)) {
        let server = Raw::open(container.namespace(), node_address);
        for (host, inner) in PORTS {
            for (client, from) in [(&outside, outside_address), (node.namespace(), node_address)] {
                let client = Raw::open(client, node_address);
                heard.extend(associate((&client, from), node_address, &server, [host, inner]));
            }
        }
    }
    heard
}

#[test]
fn an_association_by_a_host_port_is_the_same_as_by_the_reference_portmaps() {
    if !Path::new("/usr/lib/cni/portmap").exists() {
        skip(Lacking::Package("containernetworking-plugins"));
        return;
    }
    let (ours, theirs) = (heard(false), heard(true));
    assert_eq!(ours.len(), 48);
    assert_eq!(ours, theirs);
}

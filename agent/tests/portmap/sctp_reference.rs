//! One association by host ports of ours and by the reference portmap's: what each end gets is the same, byte for byte.

use std::net::IpAddr;
use std::path::Path;

use serde_json::json;
use shunt_lab::{Container, Lab, Lacking, Node, skip};

use crate::sctp::{Packet, Raw};
use crate::stage::{NODE, OUTSIDE, address, give, join, mapping};

/// Host ports, and where they lead.
const PORTS: [(u16, u16); 2] = [(8132, 7132), (9899, 9899)];

/// Kinds of chunks (RFC 9260 section 3.2).
const DATA: u8 = 0;
const INIT: u8 = 1;
const INIT_ACK: u8 = 2;
const COOKIE_ECHO: u8 = 10;
const COOKIE_ACK: u8 = 11;

const OF_CLIENT: [u8; 4] = *b"clnt";
const OF_SERVER: [u8; 4] = *b"srvr";

/// Who sends a packet.
#[derive(Clone, Copy)]
enum From {
    Client,
    Server,
}

fn chunk(kind: u8, flags: u8, value: &[u8]) -> Vec<u8> {
    let length = (4 + value.len()) as u16;
    [&[kind, flags][..], &length.to_be_bytes(), value].concat()
}

/// An association that begins, and a message each way: who sends it, its verification tag, and its chunk. A conntrack looks at
/// all of that.
fn association() -> Vec<(From, [u8; 4], Vec<u8>)> {
    let window_streams_sequence: [u8; 12] = [0, 1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 1];
    let init = [&OF_CLIENT[..], &window_streams_sequence].concat();
    let cookie = [0, 7, 0, 8, b'c', b'o', b'o', b'k'];
    let init_ack = [&OF_SERVER[..], &window_streams_sequence, &cookie].concat();
    let message = [&[0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0][..], &[7; 1000]].concat();
    vec![
        (From::Client, [0; 4], chunk(INIT, 0, &init)),
        (From::Server, OF_CLIENT, chunk(INIT_ACK, 0, &init_ack)),
        (From::Client, OF_SERVER, chunk(COOKIE_ECHO, 0, b"cook")),
        (From::Server, OF_CLIENT, chunk(COOKIE_ACK, 0, &[])),
        (From::Client, OF_SERVER, chunk(DATA, 3, &message)),
        (From::Server, OF_CLIENT, chunk(DATA, 3, &message)),
    ]
}

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
    for (node, outside_address) in NODE.map(address).into_iter().zip(OUTSIDE.map(address)) {
        let client = Raw::open(&outside, node);
        let server = Raw::open(container.namespace(), node);
        for (host, inner) in PORTS {
            for (from, tag, payload) in association() {
                heard.push(match from {
                    From::Client => {
                        client.send(&Packet { ports: [40_000, host], tag, payload }, node);
                        server.receive()
                    }
                    From::Server => {
                        server.send(&Packet { ports: [inner, 40_000], tag, payload }, outside_address);
                        client.receive()
                    }
                });
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
    assert_eq!(ours.len(), 24);
    assert_eq!(ours, theirs);
}

//! SCTP from the node's own processes to a container by a port of the node.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::json;
use shunt_lab::{Lacking, Namespace, skip, uninterrupted};
use socket2::{Domain, Protocol, Socket, Type};

use crate::association::{associate, beginning};
use crate::sctp::Raw;
use crate::stage::{NODE, Stage, address, mapping};

const PATIENCE: Duration = Duration::from_secs(10);
const NEVER: Duration = Duration::from_millis(300);
const SCTP: i32 = 132;

/// What the node is called, but for its loopback.
const NAMES: [&str; 4] = [NODE[0], NODE[1], "10.77.0.1", "fd77::1"];

/// Whether the beginning of an association from the node to a port of its own gets into the stage's container.
fn gets_in(stage: &Stage, name: &str, port: u16) -> bool {
    let name = address(name);
    let server = Raw::open(stage.sandboxes[0].namespace(), name);
    // A question of its own each time: for one that was asked before, conntrack remembers the answer.
    static NEXT: std::sync::atomic::AtomicU16 = std::sync::atomic::AtomicU16::new(41_000);
    let own = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    Raw::open(stage.node.namespace(), name).send(&beginning([own, port]), name);
    server.hears_within(NEVER)
}

fn rules(stage: &Stage) -> String {
    stage.node.namespace().command("nft", &["list", "ruleset"]).unwrap()
}

#[test]
fn the_nodes_own_associations_reach_a_container_by_every_address_but_the_loopback() {
    let mut stage = Stage::new();
    stage.add("one", &[mapping(8132, 7132, "sctp"), mapping(9899, 9899, "sctp"), mapping(8132, 7000, "tcp")]);
    for name in NAMES.map(address) {
        let client = Raw::open(stage.node.namespace(), name);
        let server = Raw::open(stage.sandboxes[0].namespace(), name);
        for ports in [[8132, 7132], [9899, 9899]] {
            let heard = associate((&client, name), name, &server, ports);
            assert_eq!(heard.len(), 6);
            for (at, (packet, from)) in heard.iter().enumerate() {
                let (is_at_server, [host, inner]) = (at % 2 == 0, ports);
                let expected = if is_at_server { [40_000, inner] } else { [host, 40_000] };
                assert_eq!((packet.ports, *from), (expected, name), "packet {at}");
            }
        }
    }
    for name in ["127.0.0.1", "127.9.9.9", "::1"] {
        assert!(!gets_in(&stage, name, 8132), "{name}");
    }
    assert!(!gets_in(&stage, NODE[0], 7132), "no host port");
}

#[test]
fn a_host_port_of_one_address_or_one_family_is_reached_by_that() {
    let mut stage = Stage::new();
    let of = |ip: &str, mut mapping: serde_json::Value| {
        mapping["hostIP"] = ip.into();
        mapping
    };
    stage.add(
        "one",
        &[
            of(NODE[0], mapping(8132, 7132, "sctp")),
            of("127.0.0.1", mapping(8133, 7132, "sctp")),
            of("0.0.0.0", mapping(8134, 7132, "sctp")),
            of("::", mapping(8135, 7132, "sctp")),
        ],
    );
    for (name, port) in [(NODE[0], 8132), (NODE[0], 8134), ("10.77.0.1", 8134), (NODE[1], 8135)] {
        assert!(gets_in(&stage, name, port), "{name}:{port}");
    }
    for (name, port) in
        [("10.77.0.1", 8132), (NODE[1], 8132), (NODE[0], 8133), (NODE[1], 8134), (NODE[0], 8135)]
    {
        assert!(!gets_in(&stage, name, port), "{name}:{port}");
    }
}

#[test]
fn the_rules_follow_the_host_ports_and_go_with_the_last_of_them() {
    let mut stage = Stage::new();
    stage.add("one", &[mapping(8132, 7132, "tcp")]);
    assert_eq!(rules(&stage), "", "TCP needs none");
    let ask = |stage: &Stage, host_port: u16| {
        let network = stage.mapped(&[mapping(host_port, 7132, "sctp")]).with("updateExisting", json!(true));
        let _again = network.add(stage.node.namespace(), stage.sandboxes[0].container()).unwrap();
    };
    ask(&stage, 8132);
    assert!(gets_in(&stage, NODE[0], 8132));
    ask(&stage, 8133);
    assert!(gets_in(&stage, NODE[0], 8133) && !gets_in(&stage, NODE[0], 8132));
    stage.sandboxes.pop().unwrap().delete(&stage.node, &stage.network).unwrap();
    assert_eq!(rules(&stage), "", "without host ports, nothing tracks the node's connections");
}

/// A socket of the kernel's own SCTP, one association each, which is used as one of TCP is (RFC 6458 section 4). None where
/// the kernel has none.
fn socket(inside: &Namespace, like: IpAddr) -> Option<Socket> {
    let domain = Domain::for_address(SocketAddr::new(like, 0));
    let open = || Socket::new(domain, Type::STREAM, Some(Protocol::from(SCTP)));
    inside.enter(open).unwrap().ok()
}

#[test]
fn sockets_of_the_kernels_own_sctp_talk_by_a_host_port_from_outside_and_from_the_node() {
    let mut stage = Stage::new();
    if socket(&stage.outside, address(NODE[0])).is_none() {
        return skip(Lacking::Kernel("SCTP"));
    }
    stage.add("one", &[mapping(8132, 7132, "sctp")]);
    for (at, name) in NODE.map(address).into_iter().enumerate() {
        let own = stage.sandboxes[0].addresses()[at];
        let listener = socket(stage.sandboxes[0].namespace(), name).unwrap();
        listener.bind(&SocketAddr::new(own, 7132).into()).unwrap();
        listener.listen(8).unwrap();
        // To itself the node has a path with the loopback's MTU: of its own messages, those that the container's link has room
        // for get through, as by the reference portmap.
        for (client, length) in [(&stage.outside, 9000), (stage.node.namespace(), 1200)] {
            let asking = socket(client, name).unwrap();
            asking.connect_timeout(&SocketAddr::new(name, 8132).into(), PATIENCE).unwrap();
            let mut answering = TcpStream::from(uninterrupted(|| listener.accept()).unwrap().0);
            let mut asking = TcpStream::from(asking);
            for stream in [&asking, &answering] {
                stream.set_read_timeout(Some(PATIENCE)).unwrap();
            }
            let mut heard = vec![0; length];
            for round in 0..20 {
                let word = vec![round; length];
                asking.write_all(&word).unwrap();
                answering.read_exact(&mut heard).unwrap();
                answering.write_all(&heard).unwrap();
                asking.read_exact(&mut heard).unwrap();
                assert_eq!(heard, word);
            }
        }
    }
}

//! What connected UDP sockets of the node asked for is remembered for as long as they live, whoever else connects, and no longer.

use std::net::SocketAddr;

use aya::maps::{HashMap, Map, MapData};
use shunt_dataplane::abi::translation::{Peer, PeerKey};
use shunt_dataplane::abi::{ABI_VERSION, MAX_PEERS};
use shunt_lab::Agent;

use crate::stage::{OUTSIDE, Stage, address, mapping};
use crate::stale_sockets::{connected, is_refused, reaches_somebody, talk};

/// `CONNECTED_PEERS` or `PEERS`.
fn peers(agent: &Agent, name: &str) -> HashMap<MapData, PeerKey, Peer> {
    let pin = agent.bpffs().join(format!("v{ABI_VERSION}/maps/{name}"));
    HashMap::try_from(Map::from_map_data(MapData::from_pin(pin).unwrap()).unwrap()).unwrap()
}

fn count(agent: &Agent, name: &str) -> usize {
    peers(agent, name).keys().map(Result::unwrap).count()
}

/// An entry of a socket that there never is.
fn of_nobody(number: u32) -> PeerKey {
    PeerKey { socket: u64::MAX - u64::from(number), ..PeerKey::default() }
}

/// The kernel may have no memory at hand for a moment.
fn insert(map: &mut HashMap<MapData, PeerKey, Peer>, number: u32) -> bool {
    (0..100).any(|_| map.insert(of_nobody(number), Peer::default(), 0).is_ok())
}

fn host_port(name: &str, port: u16) -> SocketAddr {
    SocketAddr::new(address(name), port)
}

#[test]
fn a_connected_socket_follows_its_host_port_however_many_have_connected_since() {
    let mut stage = Stage::new();
    stage.add("one", &[mapping(8080, 7000, "udp")]);
    let echo = stage.echo(0, 7000);
    let to = ["127.0.0.1", "::1"].map(|name| host_port(name, 8080));
    let led = to.map(|to| (connected(stage.node.namespace(), to), to));
    led.iter().for_each(|(socket, to)| talk(socket, &to.to_string()));
    let mut others = peers(stage.node.agent(), "PEERS");
    assert!((0..2 * MAX_PEERS).all(|number| insert(&mut others, number)));
    for (socket, to) in &led {
        assert_eq!(socket.peer_addr().unwrap(), *to);
    }
    drop(echo);
    stage.sandboxes.remove(0).delete(&stage.node, &stage.network).unwrap();
    led.iter().for_each(|(socket, to)| is_refused(socket, &to.to_string()));
    stage.add("two", &[mapping(8080, 7000, "udp")]);
    let _echo = stage.echo(0, 7000);
    for (socket, to) in &led {
        reaches_somebody(socket, &to.to_string());
        assert_eq!(socket.peer_addr().unwrap(), *to);
    }
}

#[test]
fn entries_go_with_their_sockets_and_with_the_peers_that_a_socket_had_before() {
    let mut stage = Stage::new();
    stage.add("one", &[mapping(8080, 7000, "udp"), mapping(8081, 7001, "udp")]);
    let node = stage.node.namespace();
    let kept = ["127.0.0.1", "::1"].map(|name| (connected(node, host_port(name, 8080)), name));
    let moved = connected(node, host_port("127.0.0.1", 8080));
    moved.connect(host_port("127.0.0.1", 8081)).unwrap();
    let left = connected(node, host_port("127.0.0.1", 8080));
    left.connect(host_port(OUTSIDE[0], 9)).unwrap();
    let closed: Vec<_> = (0..50).map(|_| connected(node, host_port("127.0.0.1", 8081))).collect();
    assert_eq!(count(stage.node.agent(), "CONNECTED_PEERS"), 2 + 2 + 1 + 50);
    drop(closed);
    stage.wait_until("the entries of connected sockets are left", |agent| {
        count(agent, "CONNECTED_PEERS") == 2 + 1
    });
    for (socket, name) in &kept {
        assert_eq!(socket.peer_addr().unwrap(), host_port(name, 8080));
    }
    assert_eq!(moved.peer_addr().unwrap(), host_port("127.0.0.1", 8081));
    assert_eq!(left.peer_addr().unwrap(), host_port(OUTSIDE[0], 9));
}

#[test]
fn a_socket_for_which_there_is_no_room_is_remembered_as_all_were_before() {
    let mut stage = Stage::new();
    stage.add("one", &[mapping(8080, 7000, "udp")]);
    let mut full = peers(stage.node.agent(), "CONNECTED_PEERS");
    assert!((0..MAX_PEERS).all(|number| insert(&mut full, number)));
    assert!(!insert(&mut full, MAX_PEERS), "it is full");
    let to = host_port("127.0.0.1", 8080);
    let socket = connected(stage.node.namespace(), to);
    assert_eq!(count(stage.node.agent(), "PEERS"), 1);
    assert_eq!(socket.peer_addr().unwrap(), to);
    stage.wait_until("entries without a socket go", |agent| count(agent, "CONNECTED_PEERS") == 0);
    stage.sandboxes.remove(0).delete(&stage.node, &stage.network).unwrap();
    is_refused(&socket, "its container is gone");
}

#[test]
fn an_agent_that_knows_no_map_of_connected_sockets_finds_them_and_gives_them_back() {
    let mut stage = Stage::new();
    stage.add("one", &[mapping(8080, 7000, "udp")]);
    let to = host_port("127.0.0.1", 8080);
    let socket = connected(stage.node.namespace(), to);
    let counts = |stage: &Stage| ["CONNECTED_PEERS", "PEERS"].map(|name| count(stage.node.agent(), name));
    assert_eq!(counts(&stage), [1, 0]);
    stage.node.agent_mut().terminate().unwrap();
    assert_eq!(counts(&stage), [1, 1], "it leaves the entry for whoever comes next");
    // As an older agent's programs have it.
    let mut map = peers(stage.node.agent(), "CONNECTED_PEERS");
    let key = map.keys().next().unwrap().unwrap();
    map.remove(&key).unwrap();
    assert_eq!(socket.peer_addr().unwrap(), to);
    stage.node.restart_agent().unwrap();
    assert_eq!(counts(&stage), [1, 1], "the next one has taken it over");
    assert_eq!(socket.peer_addr().unwrap(), to);
}

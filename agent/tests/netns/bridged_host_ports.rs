//! Host ports of a node whose own address is on a bridge, which an uplink leads out of: what comes from outside comes by the bridge.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use serde_json::json;
use shunt_lab::{Conversation, Namespace, Protocol};

use crate::datagram::{UDP, framed, packet, udp};
use crate::restrictions::tap;
use crate::stage::Stage;
use crate::uplinks::{self, add_in};
use crate::wire::{Wire, says};

const PATIENCE: Duration = Duration::from_secs(10);
const NODE: [&str; 2] = ["192.0.2.1", "2001:db8::1"];
const OUTSIDE: [&str; 2] = ["192.0.2.9", "2001:db8::9"];
/// The container's own subnet, and somebody outside who has an address of it.
const GATEWAY: [&str; 2] = ["10.77.0.1", "fd77::1"];
const ON_LINK: [&str; 2] = ["10.77.0.200", "fd77::200"];

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// A node that has its addresses on the uplink `up0`, and after the first container on the bridge.
fn stage() -> (Stage, Namespace) {
    let (mut stage, outside) = uplinks::stage();
    for (namespace, ifname, addresses) in [(stage.node.namespace(), "up0", NODE), (&outside, "eth0", OUTSIDE)]
    {
        give(namespace, ifname, addresses);
    }
    stage.empty = stage.node.inventory().unwrap();
    let network = stage.network.clone().with("isDefaultGateway", json!(true));
    stage.network = network.with("uplinkMoveAddress", json!(true));
    (stage, outside)
}

fn give(namespace: &Namespace, ifname: &str, addresses: [&str; 2]) {
    for (address, length) in addresses.into_iter().zip(["24", "64"]) {
        let prefix = format!("{address}/{length}");
        let mut arguments = vec!["address", "add", &prefix, "dev", ifname];
        if address.contains(':') {
            arguments.push("nodad");
        }
        namespace.command("ip", &arguments).unwrap();
    }
}

fn add_mapped(stage: &mut Stage, id: &str, host_port: u16) {
    let mapping = |protocol| json!({ "hostPort": host_port, "containerPort": 7000, "protocol": protocol });
    let mappings = json!({ "portMappings": [mapping("tcp"), mapping("udp")] });
    add_in(stage, id, "runtimeConfig", mappings);
    stage.node.settle().unwrap();
}

/// As whom the first container sees who asks `node` from `client`.
fn seen(stage: &Stage, client: &Namespace, node: IpAddr, own: IpAddr) -> IpAddr {
    let server = stage.sandboxes[0].namespace();
    let listener = server.enter(|| TcpListener::bind((own, 7000)).unwrap()).unwrap();
    let dial = || TcpStream::connect_timeout(&SocketAddr::new(node, 8080), PATIENCE);
    let mut asking = client.enter(dial).unwrap().unwrap_or_else(|error| {
        panic!("{node} from {client:?}: {error}\n{}", stage.node.agent().log_tail());
    });
    let (mut answering, from) = listener.accept().unwrap();
    for stream in [&asking, &answering] {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
    }
    let mut heard = [0; 5];
    asking.write_all(b"asked").unwrap();
    answering.read_exact(&mut heard).unwrap();
    answering.write_all(&heard).unwrap();
    asking.read_exact(&mut heard).unwrap();
    assert_eq!(&heard, b"asked");
    from.ip()
}

#[test]
fn a_client_beyond_a_bridged_uplink_is_seen_as_itself_and_a_neighbor_as_the_node() {
    let (mut stage, outside) = stage();
    add_mapped(&mut stage, "one", 8080);
    stage.add("two");
    let own = stage.sandboxes[0].addresses();
    for (family, own) in own.into_iter().enumerate() {
        let [node, client] = [NODE, OUTSIDE].map(|names| address(names[family]));
        assert_eq!(seen(&stage, &outside, node, own), client);
        // Whom the container takes for a neighbor it would answer past the node.
        assert_eq!(seen(&stage, stage.sandboxes[1].namespace(), node, own), address(GATEWAY[family]));
    }
    give(&outside, "eth0", ON_LINK);
    for (family, own) in stage.sandboxes[0].addresses().into_iter().enumerate() {
        let gateway = address(GATEWAY[family]);
        assert_eq!(seen(&stage, &outside, gateway, own), gateway);
    }
}

#[test]
fn by_a_bridged_uplink_streams_and_datagrams_in_pieces_get_through_and_to_who_meets_no_container() {
    let (mut stage, outside) = stage();
    let open = stage.network.clone();
    stage.network = open.with("ingressPolicy", json!("isolated"));
    add_mapped(&mut stage, "one", 8080);
    let addresses = stage.sandboxes[0].addresses();
    let _echo: Vec<_> = addresses.iter().map(|own| stage.sandboxes[0].echo(*own, 7000).unwrap()).collect();
    for node in NODE.map(address) {
        let to = SocketAddr::new(node, 8080);
        for (protocol, length) in [(Protocol::Tcp, 30_000), (Protocol::Udp, 1_000), (Protocol::Udp, 4_000)] {
            let talk = Conversation::open(&outside, protocol, to).and_then(|mut talk| talk.chat(20, length));
            talk.unwrap_or_else(|error| {
                panic!("{to} by {protocol:?}, {length}: {error:#}\n{}", stage.node.agent().log_tail());
            });
        }
    }
    let port = stage.node.agent().port("one").unwrap();
    assert!(port.to.fast > 100 && port.from.fast > 100, "{port:?}");
    // The container next door meets it neither by the port nor without.
    stage.add("two");
    let neighbor = stage.sandboxes[1].namespace();
    let dial = || TcpStream::connect_timeout(&(address(NODE[0]), 8080).into(), Duration::from_secs(1));
    assert!(neighbor.enter(dial).unwrap().is_err());
}

#[test]
fn a_container_with_the_routers_mac_address_reaches_an_isolated_one_by_no_host_port() {
    let (mut stage, outside) = stage();
    let open = stage.network.clone();
    stage.network = open.clone().with("ingressPolicy", json!("isolated"));
    add_mapped(&mut stage, "one", 8080);
    stage.network = open;
    stage.add("two");
    let _echo = stage.sandboxes[0].echo(stage.sandboxes[0].addresses()[0], 7000).unwrap();
    let ask = || {
        let to = SocketAddr::new(address(NODE[0]), 8080);
        Conversation::open(&outside, Protocol::Udp, to).and_then(|mut talk| talk.chat(3, 100)).unwrap();
    };
    // By then the bridge's programs know where the router is.
    ask();
    let (to, from) = (tap(&stage.sandboxes[0]), tap(&stage.sandboxes[1]));
    let router = Wire::tap(&outside, "eth0").mac();
    let bridge = Wire::tap(stage.node.namespace(), "cni0").mac();
    for (node, client) in NODE.into_iter().zip(OUTSIDE) {
        let lie = packet(UDP, address(client), address(node), 64, udp([50_000, 8080], b"a lie"));
        from.send(&framed(bridge, router, &lie));
    }
    assert!(!to.until_silence().iter().any(|frame| says(frame, "a lie")));
    let drops = stage.node.agent().drops().unwrap();
    let dropped = drops.iter().filter(|drop| drop.reason == "ingress_policy" && drop.port == "cni0");
    assert_eq!(dropped.map(|drop| drop.packets).sum::<u64>(), 2, "{drops:?}");
    // The router goes on, and its packets leave no mark on the node.
    ask();
}

#[test]
fn from_an_address_that_nobody_outside_can_have_no_datagram_reaches_a_host_port() {
    let (mut stage, outside) = stage();
    add_mapped(&mut stage, "one", 8080);
    let to = tap(&stage.sandboxes[0]);
    let from = Wire::tap(&outside, "eth0");
    let bridge = Wire::tap(stage.node.namespace(), "cni0").mac();
    let send = |source: IpAddr, text: &str| {
        let node = NODE[usize::from(source.is_ipv6())];
        let datagram = packet(UDP, source, address(node), 64, udp([50_000, 8080], text.as_bytes()));
        from.send(&framed(bridge, from.mac(), &datagram));
    };
    let martians =
        ["127.0.0.1", "0.0.0.9", "224.0.0.9", "255.255.255.255", NODE[0], GATEWAY[0], "::1", "ff02::1"];
    for source in martians.map(address) {
        send(source, "from Mars");
    }
    for source in OUTSIDE.map(address) {
        send(source, "from here");
    }
    let seen = to.until(|frame| says(frame, "from here"));
    assert!(!seen.iter().any(|frame| says(frame, "from Mars")), "{seen:02x?}");
}

#[test]
fn what_the_node_asks_by_a_published_port_is_answered_to_the_node() {
    let (mut stage, outside) = stage();
    add_mapped(&mut stage, "one", 8080);
    let addresses = stage.sandboxes[0].addresses();
    let _echo: Vec<_> = addresses.iter().map(|own| stage.sandboxes[0].echo(*own, 7000).unwrap()).collect();
    let bind = |namespace: &Namespace, at: &str, port: u16| {
        let socket = namespace.enter(|| UdpSocket::bind((address(at), port)).unwrap()).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket
    };
    for (node, client) in NODE.into_iter().zip(OUTSIDE) {
        let (asking, answering) = (bind(stage.node.namespace(), node, 8080), bind(&outside, client, 5300));
        let mut heard = [0; 8];
        for question in 0..3 {
            asking.send_to(b"asked", (address(client), 5300)).unwrap();
            let (_, from) = answering.recv_from(&mut heard).unwrap();
            assert_eq!(from, SocketAddr::new(address(node), 8080));
            answering.send_to(b"told", from).unwrap();
            let told = asking.recv(&mut heard).map(|length| heard[..length].to_vec());
            assert!(told.as_ref().is_ok_and(|told| told == b"told"), "{node}, {question}: {told:?}");
        }
        // Whom the node has not asked meets the container.
        let to = SocketAddr::new(address(node), 8080);
        Conversation::open(&outside, Protocol::Udp, to).and_then(|mut talk| talk.chat(3, 100)).unwrap();
    }
}

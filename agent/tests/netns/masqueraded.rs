//! ipMasq by the programs: a connection to the world never meets netfilter, and what does not begin that way is the kernel's.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use nix::sys::socket::{setsockopt, sockopt};
use shunt_lab::{Conversation, Echo, Namespace, Protocol, uninterrupted};
use shunt_netlink::conntrack;

use crate::masquerade::{NODE, OUTSIDE, World, any};

const PATIENCE: Duration = Duration::from_secs(5);

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// A socket on a port of its own.
fn bound(namespace: &Namespace, like: IpAddr, port: u16) -> UdpSocket {
    let socket = namespace.enter(|| UdpSocket::bind((any(like), port)).unwrap()).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

/// Has `client` send to `server`, which answers; whom the server saw.
fn seen(server: &UdpSocket, client: &UdpSocket) -> SocketAddr {
    client.send_to(b"who am I?", server.local_addr().unwrap()).unwrap();
    let mut heard = [0; 16];
    let (_, from) = uninterrupted(|| server.recv_from(&mut heard)).unwrap();
    server.send_to(b"that one", from).unwrap();
    let (bytes, answerer) = uninterrupted(|| client.recv_from(&mut heard)).unwrap();
    assert_eq!((&heard[..bytes], answerer), (&b"that one"[..], server.local_addr().unwrap()));
    from
}

/// A server outside that says nothing by itself.
fn server(world: &World, family: usize, port: u16) -> UdpSocket {
    let address = address(OUTSIDE[family]);
    let server = world.outside.enter(|| UdpSocket::bind((address, port)).unwrap()).unwrap();
    server.set_read_timeout(Some(PATIENCE)).unwrap();
    server
}

/// Whether the node's conntrack knows of a connection to this end.
fn is_tracked(world: &World, to: SocketAddr) -> bool {
    let tracked = world.node.namespace().enter(|| conntrack::tracked_connections().unwrap()).unwrap();
    tracked.iter().any(|connection| connection.original.destination == to)
}

#[test]
fn a_connection_to_the_world_never_meets_netfilter() {
    let mut world = World::new();
    world.add("one");
    world.node.settle().unwrap();
    let before = world.node.agent().port("one").unwrap();
    for outside in OUTSIDE.map(address) {
        let echo = Echo::listen(&world.outside, outside, 7000).unwrap();
        for protocol in [Protocol::Tcp, Protocol::Udp] {
            let inside = world.sandboxes[0].namespace();
            Conversation::open(inside, protocol, echo.address()).unwrap().chat(40, 1400).unwrap();
        }
        assert!(!is_tracked(&world, echo.address()), "{outside} is conntrack's");
    }
    let after = world.node.agent().port("one").unwrap();
    assert!(after.from.fast >= before.from.fast + 160, "out by the fast path: {before:?} {after:?}");
    assert!(after.to.fast >= before.to.fast + 160, "back by the fast path: {before:?} {after:?}");
    let flows = world.node.agent().ask("flows").unwrap();
    let flows: Vec<_> = flows.as_array().unwrap().iter().filter(|flow| flow["dport"] == 7000).collect();
    assert_eq!(flows.len(), 4, "{flows:?}");
    for (flow, node) in flows.iter().map(|flow| (flow, flow["translated"]["src"].as_str().unwrap())) {
        assert!(NODE.contains(&node), "{flow}");
    }
}

#[test]
fn a_source_port_is_kept_where_it_is_nobodys() {
    let mut world = World::new();
    world.add("one");
    world.add("two");
    world.node.settle().unwrap();
    for (family, node) in NODE.map(address).into_iter().enumerate() {
        let server = server(&world, family, 7001);
        let [one, two] = [0, 1].map(|which| world.sandboxes[which].namespace());
        let from = |namespace: &Namespace, port| seen(&server, &bound(namespace, node, port));
        // Not the same ones in both rounds: a process that is being born may have the sockets of the first yet.
        let [kept, nodes, many] = [5555, 5565, 40_000].map(|port| port + family as u16);
        assert_eq!(from(one, kept), SocketAddr::new(node, kept));
        let other = from(two, kept);
        assert!(other.ip() == node && other.port() != kept, "the other has it: {other}");
        let ephemeral = from(one, many);
        assert_eq!(ephemeral, SocketAddr::new(node, many), "also where the node's own sockets get theirs");
        // A socket of the node's talks with the same server.
        let own = world.node.namespace().enter(|| UdpSocket::bind((node, nodes)).unwrap()).unwrap();
        own.set_read_timeout(Some(PATIENCE)).unwrap();
        assert_eq!(seen(&server, &own), SocketAddr::new(node, nodes));
        assert_ne!(from(one, nodes).port(), nodes);
        assert_eq!(seen(&server, &own), SocketAddr::new(node, nodes), "and goes on");
    }
}

#[test]
fn a_datagram_in_fragments_is_masqueraded_as_a_whole_one_is() {
    const BYTES: usize = 4000;
    let mut world = World::new();
    world.add("one");
    world.node.settle().unwrap();
    let inside = world.sandboxes[0].namespace();
    for (family, node) in NODE.map(address).into_iter().enumerate() {
        let server = server(&world, family, 7003);
        let client = bound(inside, node, 40_100 + family as u16);
        let whole = seen(&server, &client);
        let sent: Vec<u8> = (0..BYTES).map(|n| (n / 11) as u8).collect();
        let mut heard = vec![0; BYTES];
        client.send_to(&sent, server.local_addr().unwrap()).unwrap();
        let (bytes, from) = uninterrupted(|| server.recv_from(&mut heard)).unwrap();
        assert!(bytes == BYTES && heard == sent, "{bytes} bytes from {from}");
        assert_eq!(from, whole, "the same connection");
        server.send_to(&sent, from).unwrap();
        heard.fill(0);
        let (bytes, _) = uninterrupted(|| client.recv_from(&mut heard)).unwrap();
        assert!(bytes == BYTES && heard == sent, "{bytes} bytes back");
        assert!(!is_tracked(&world, server.local_addr().unwrap()), "{node}");
    }
}

/// Sends until an error comes back, and returns its kind.
fn error_from(client: &UdpSocket, to: SocketAddr) -> ErrorKind {
    client.connect(to).unwrap();
    client.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        match client.send(b"anybody?").and_then(|_| uninterrupted(|| client.recv(&mut [0; 8]))) {
            Ok(_) => panic!("{to} answers"),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(error) => return error.kind(),
        }
    }
    panic!("no word from {to}");
}

/// A namespace behind the one outside, by a link that takes 1280 bytes.
pub(crate) fn far(world: &World) -> (Namespace, [IpAddr; 2]) {
    let far = world.lab.namespace("far").unwrap();
    let (router, there) = (["10.98.0.1", "fd98::1"], ["10.98.0.2", "fd98::2"]);
    world.outside.pair("narrow", &far, "eth0").unwrap();
    world.outside.command("ip", &["link", "set", "narrow", "mtu", "1280"]).unwrap();
    for family in 0..2 {
        let length = ["24", "64"][family];
        for (namespace, ifname, own) in [(&world.outside, "narrow", router), (&far, "eth0", there)] {
            let own = format!("{}/{length}", own[family]);
            namespace.command("ip", &["address", "add", &own, "dev", ifname, "nodad"]).unwrap();
        }
        let (net, back) = (["10.98.0.0/24", "fd98::/64"], ["10.99.0.0/24", "fd99::/64"]);
        // What is sent back fits, or it would be lost before the router could say so; what it wants to be sent does not.
        let (via, most) = (router[family], ["1460", "1440"][family]);
        let narrow = ["route", "add", back[family], "via", via, "mtu", "1280", "advmss", most];
        far.command("ip", &narrow).unwrap();
        let node = world.node.namespace();
        node.command("ip", &["route", "add", net[family], "via", OUTSIDE[family]]).unwrap();
    }
    world.outside.sysctl("net/ipv4/ip_forward", "1").unwrap();
    world.outside.sysctl("net/ipv6/conf/all/forwarding", "1").unwrap();
    (far, there.map(address))
}

#[test]
fn a_container_hears_what_routers_and_hosts_say_of_its_packets() {
    let mut world = World::new();
    world.add("one");
    world.node.settle().unwrap();
    let (far, there) = far(&world);
    let inside = world.sandboxes[0].namespace();
    for (family, there) in there.into_iter().enumerate() {
        let first = 5600 + 10 * family as u16;
        let client = bound(inside, there, first);
        assert_eq!(error_from(&client, SocketAddr::new(there, 9)), ErrorKind::ConnectionRefused);
        // A hop each: the node, and the router behind it. Both say so, as traceroute wants to know.
        for hops in [1, 2] {
            let client = bound(inside, there, first + hops as u16);
            if there.is_ipv4() {
                setsockopt(&client, sockopt::Ipv4RecvErr, &true).unwrap();
                setsockopt(&client, sockopt::Ipv4Ttl, &hops).unwrap();
            } else {
                setsockopt(&client, sockopt::Ipv6RecvErr, &true).unwrap();
                setsockopt(&client, sockopt::Ipv6Ttl, &hops).unwrap();
            }
            let said = error_from(&client, SocketAddr::new(there, 10));
            assert_eq!(said, ErrorKind::HostUnreachable, "{hops} hops to {there}");
        }
        let echo = Echo::listen(&far, there, 7000).unwrap();
        Conversation::open(inside, Protocol::Tcp, echo.address()).unwrap().chat(4, 16_000).unwrap();
        let route = inside.command("ip", &["route", "get", &there.to_string()]).unwrap();
        assert!(route.contains("mtu 1280"), "the container's route to {there}: {route}");
        assert!(!is_tracked(&world, echo.address()), "{there} is conntrack's");
    }
}

#[test]
fn a_stream_outlives_the_agent_and_goes_with_its_container() {
    let mut world = World::new();
    world.add("one");
    world.node.settle().unwrap();
    let echo = Echo::listen(&world.outside, address(OUTSIDE[0]), 7000).unwrap();
    let inside = world.sandboxes[0].namespace();
    let mut stream = Conversation::open(inside, Protocol::Tcp, echo.address()).unwrap();
    stream.chat(5, 1400).unwrap();
    world.node.agent_mut().kill().unwrap();
    stream.chat(5, 1400).unwrap();
    world.node.restart_agent().unwrap();
    stream.chat(5, 1400).unwrap();
    assert!(!is_tracked(&world, echo.address()));
    let mut later = Conversation::open(inside, Protocol::Tcp, echo.address()).unwrap();
    later.chat(5, 1400).unwrap();
    assert!(!is_tracked(&world, echo.address()), "begun after the start");
    world.sandboxes[0].delete(&world.node, &world.network).unwrap();
    let begun = Instant::now();
    while world.node.agent().ask("flows").unwrap().as_array().is_none_or(|flows| !flows.is_empty()) {
        assert!(begun.elapsed() < PATIENCE, "its connections stay");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn what_leaves_by_another_way_is_the_kernels() {
    let mut world = World::with(&["--uplink", "elsewhere"]);
    world.add("one");
    world.node.settle().unwrap();
    for outside in OUTSIDE.map(address) {
        let echo = Echo::listen(&world.outside, outside, 7000).unwrap();
        for protocol in [Protocol::Tcp, Protocol::Udp] {
            let inside = world.sandboxes[0].namespace();
            Conversation::open(inside, protocol, echo.address()).unwrap().chat(10, 1400).unwrap();
        }
        assert!(is_tracked(&world, echo.address()), "{outside}");
    }
    assert_eq!(world.node.agent().ask("flows").unwrap().as_array().map(Vec::len), Some(0));
}

#[test]
fn where_others_have_rules_the_kernel_masquerades_what_begins_and_the_rest_goes_on() {
    let mut world = World::new();
    world.add("one");
    world.node.settle().unwrap();
    let outside = address(OUTSIDE[0]);
    let echo = Echo::listen(&world.outside, outside, 7000).unwrap();
    let inside = world.sandboxes[0].namespace();
    let mut known = Conversation::open(inside, Protocol::Tcp, echo.address()).unwrap();
    known.chat(5, 1400).unwrap();
    let node = world.node.namespace();
    node.command("nft", &["add table ip admin"]).unwrap();
    node.command("nft", &["add chain ip admin forward { type filter hook forward priority 0; }"]).unwrap();
    node.command("nft", &["add rule ip admin forward tcp dport 7009 drop"]).unwrap();
    let other = Echo::listen(&world.outside, outside, 7001).unwrap();
    let begun = Instant::now();
    while !is_tracked(&world, other.address()) {
        assert!(begun.elapsed() < 3 * PATIENCE, "its rules are passed by");
        Conversation::open(inside, Protocol::Tcp, other.address()).unwrap().chat(2, 1400).unwrap();
        std::thread::sleep(Duration::from_millis(300));
    }
    known.chat(5, 1400).unwrap();
    assert!(!is_tracked(&world, echo.address()), "what was begun stays where it is");
    // The next one sees them at once.
    world.add("two");
    let third = Echo::listen(&world.outside, outside, 7002).unwrap();
    let inside = world.sandboxes[1].namespace();
    Conversation::open(inside, Protocol::Udp, third.address()).unwrap().chat(5, 1400).unwrap();
    assert!(is_tracked(&world, third.address()));
}

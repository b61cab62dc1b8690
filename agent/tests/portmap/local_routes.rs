//! Host ports at addresses that no interface has: by route, and on one link only.

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6, TcpStream, UdpSocket};
use std::time::Duration;

use shunt_lab::{Namespace, Protocol, uninterrupted};

use crate::stage::{NODE, OUTSIDE, Stage, address, mapping};

const PATIENCE: Duration = Duration::from_secs(10);

/// Prefixes, the node's addresses by which outside reaches them, and an address of each.
const PREFIXES: [(&str, &str, &str); 2] =
    [("203.0.113.0/24", NODE[0], "203.0.113.77"), ("2001:db8:a::/48", NODE[1], "2001:db8:a::77")];

#[test]
fn a_prefix_leads_there_as_long_as_it_is_the_nodes_by_route() {
    let mut stage = Stage::new();
    stage.add("one", &[mapping(8080, 7000, "tcp"), mapping(8080, 7000, "udp")]);
    let _echo = stage.echo(0, 7000);
    for (prefix, by, to) in PREFIXES {
        let node = stage.node.namespace();
        stage.outside.command("ip", &["route", "add", prefix, "via", by]).unwrap();
        node.command("ip", &["route", "add", "local", prefix, "dev", "lo"]).unwrap();
        for client in [&stage.outside, node] {
            stage.wait_until(&format!("{to} leads to the container"), |_| is_answered(client, to));
            for protocol in [Protocol::Tcp, Protocol::Udp] {
                stage.open(client, protocol, to, 8080).chat(20, 1000).unwrap();
            }
        }
        node.command("ip", &["route", "del", "local", prefix, "dev", "lo"]).unwrap();
        stage.wait_until(&format!("{to} is nobody's"), |_| !is_answered(&stage.outside, to));
    }
    // An address is the node's whether the route to it goes or not.
    stage.open(&stage.outside, Protocol::Tcp, NODE[0], 8080).chat(20, 1000).unwrap();
}

fn is_answered(client: &Namespace, to: &str) -> bool {
    let patience = Duration::from_millis(500);
    client.enter(|| TcpStream::connect_timeout(&(address(to), 8080).into(), patience)).unwrap().is_ok()
}

/// The kernel forwards nothing that comes from an address that holds on one link only (`ip6_forward`), so no host port leads it on, and
/// none is at such an address of the node's.
#[test]
fn nothing_is_led_on_from_or_to_an_address_of_one_link() {
    let mut stage = Stage::new();
    stage.add("one", &[mapping(8080, 7000, "udp")]);
    let _echo = stage.echo(0, 7000);
    let (node, client) = (link_local(stage.node.namespace(), "up0"), link_local(&stage.outside, "eth0"));
    // It is on trial for a moment.
    stage.wait_until("the client has an address of its link", |_| {
        let scoped = || SocketAddrV6::new(client, 0, 0, nix::net::if_::if_nametoindex("eth0").unwrap());
        stage.outside.enter(|| UdpSocket::bind(scoped()).is_ok()).unwrap()
    });
    let ask = |from: IpAddr, to: IpAddr| {
        let asked = || {
            let scope = nix::net::if_::if_nametoindex("eth0").unwrap();
            let scoped = |ip, port| match ip {
                IpAddr::V6(ip) if ip.is_unicast_link_local() => SocketAddrV6::new(ip, port, 0, scope).into(),
                ip => SocketAddr::new(ip, port),
            };
            let socket = UdpSocket::bind(scoped(from, 0)).unwrap();
            socket.set_read_timeout(Some(PATIENCE)).unwrap();
            socket.connect(scoped(to, 8080)).unwrap();
            let heard = socket.send(b"who?").and_then(|_| uninterrupted(|| socket.recv(&mut [0; 8])));
            heard.map_err(|error| error.kind())
        };
        stage.outside.enter(asked).unwrap()
    };
    let (own, nodes) = (address(OUTSIDE[1]), address(NODE[1]));
    assert!(ask(own, nodes).is_ok());
    for (from, to) in [(own, node.into()), (client.into(), node.into()), (client.into(), nodes)] {
        assert_eq!(
            ask(from, to),
            Err(ErrorKind::ConnectionRefused),
            "{from} to {to}: the node itself answers"
        );
    }
}

fn link_local(namespace: &Namespace, ifname: &str) -> Ipv6Addr {
    let shown =
        namespace.command("ip", &["-6", "-o", "addr", "show", "dev", ifname, "scope", "link"]).unwrap();
    let text = shown.split_whitespace().find(|word| word.starts_with("fe80")).unwrap();
    text.split('/').next().unwrap().parse().unwrap()
}

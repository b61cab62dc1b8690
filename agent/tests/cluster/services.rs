//! Services by kube-proxy's rules, whose endpoint is on another node than who asks, on the same, or the one that asks.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use shunt_lab::{Conversation, Namespace, Protocol, once_free};

use crate::pods::two;
use crate::rules::{ENDPOINT_PORT, Mode, SERVICE_PORT, VIRTUAL};
use crate::world::{OUTSIDE, ROUTER};

const PATIENCE: Duration = Duration::from_secs(5);

/// Whom the endpoint sees when `client` connects to `to`.
fn seen(client: &Namespace, endpoint: &Namespace, at: SocketAddr, to: SocketAddr) -> IpAddr {
    let listener = endpoint.enter(|| once_free(|| TcpListener::bind(at)).unwrap()).unwrap();
    let _stream = client.enter(|| TcpStream::connect_timeout(&to, PATIENCE).unwrap()).unwrap();
    listener.accept().unwrap().1.ip()
}

fn services_work(mode: Mode) {
    let mut world = two();
    let [asker, beside, endpoint] =
        [(0, "asker"), (1, "beside"), (1, "endpoint")].map(|(at, id)| world.pod(at, id));
    let IpAddr::V4(address) = world.address(endpoint, true) else { panic!("an address of IPv4") };
    for member in &world.members {
        member.node.namespace().sysctl("net/bridge/bridge-nf-call-iptables", "1").unwrap();
        // The node asks for a Service, too: it needs a way there before the rules lead it elsewhere.
        member.ip(&["route", "add", "default", "via", ROUTER[0][0]]);
        mode.install(member.node.namespace(), address);
        // The agent looks for such rules each second; until then the programs masquerade, also what is for a Service.
        let is_left =
            || member.node.agent().log_tail().contains("masqueraded connections are left to the kernel");
        member.until("masquerading is the kernel's", is_left);
    }
    let inside = |pod: usize| world.sandboxes[pod].namespace();
    let service = SocketAddr::new(VIRTUAL.into(), SERVICE_PORT);
    let at = SocketAddr::new(address.into(), ENDPOINT_PORT);
    for pod in [asker, beside] {
        assert_eq!(seen(inside(pod), inside(endpoint), at, service), world.address(pod, true), "{mode:?}");
    }
    // Itself it sees by an address of the node's: its own would be answered inside.
    let hairpin = seen(inside(endpoint), inside(endpoint), at, service);
    assert!(world.members[1].ip(&["address"]).contains(&format!("{hairpin}/")), "{mode:?}: {hairpin}");
    // The node itself, and the other one.
    for (member, index) in world.members.iter().zip(0..) {
        let from = seen(member.node.namespace(), inside(endpoint), at, service);
        let own = member.ip(&["-4", "address"]);
        assert!(own.contains(&format!("{from}/")), "{mode:?}: node {index} is {from}");
    }
    let echo = world.sandboxes[endpoint].echo(address.into(), ENDPOINT_PORT).unwrap();
    for protocol in [Protocol::Tcp, Protocol::Udp] {
        for pod in [asker, beside, endpoint] {
            Conversation::open(inside(pod), protocol, service).unwrap().chat(50, 1200).unwrap();
        }
        // Directly between the same two, beside it.
        Conversation::open(inside(asker), protocol, echo.address()).unwrap().chat(50, 1200).unwrap();
    }
    // Out of the cluster as before.
    let outside = SocketAddr::new(OUTSIDE[0].parse().unwrap(), 7000);
    let node: Ipv4Addr = world.members[0].addresses[0].parse().unwrap();
    assert_eq!(seen(inside(asker), &world.outside, outside, outside), node);
}

#[test]
fn services_reach_an_endpoint_of_another_node_by_iptables() {
    services_work(Mode::Iptables);
}

#[test]
fn services_reach_an_endpoint_of_another_node_by_nftables() {
    services_work(Mode::Nftables);
}

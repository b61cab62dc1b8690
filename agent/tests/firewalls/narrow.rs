//! Routers on a client's way say how much it takes: a container whose host port the client has asked hears of it where rules let that through, as with the
//! reference.

use std::net::{IpAddr, UdpSocket};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::libc;
use shunt_lab::{Namespace, patience, uninterrupted};

use crate::host_ports::Sides;
use crate::linked::{CLOSED, NODE, OUTSIDE, Side};
use crate::rules::{forward, nft};
use crate::same::lacks_reference;
use crate::uncut::never_cut;

/// Subnets behind the host outside, and its own addresses there.
const SUBNETS: [&str; 2] = ["198.51.100.0/24", "2001:db8:1::/64"];
const ROUTER: [&str; 2] = ["198.51.100.1", "2001:db8:1::1"];

/// How many clients there are: a container remembers what it has learned of one.
const CLIENTS: u8 = 16;

/// How long a word may take.
const ANSWER: Duration = Duration::from_millis(400);

/// What the container's link takes, and not the way to the client.
const LARGE: [u8; 1350] = [7; 1350];

/// What a container learns of a client's way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Learned {
    /// That something is too large for it.
    Size,
    Nothing,
    /// The client's question has not come.
    NotAsked,
}

/// Rules, and what a container learns under them.
type Case = (&'static str, &'static str, Learned);

const CASES: [Case; 5] = [
    (
        "what is related to a connection is let through",
        forward!("drop", "ct state established,related accept", "ct status dnat ct state new accept"),
        Learned::Size,
    ),
    (
        "what is related is refused",
        forward!("drop", "ct state established accept", "ct status dnat ct state new accept"),
        Learned::Nothing,
    ),
    ("no rules", "true", Learned::Size),
    (
        "errors are refused where they come in",
        nft!(
            "table inet engine { chain pre { type filter hook prerouting priority raw; icmp type destination-unreachable drop;
            icmpv6 type packet-too-big drop; }; }"
        ),
        Learned::Nothing,
    ),
    (
        "errors of what was led are refused where they leave",
        nft!(
            "table inet engine { chain post { type filter hook postrouting priority 0;
            oifname cni0 meta l4proto { icmp, ipv6-icmp } ct status dnat drop; }; }"
        ),
        Learned::Nothing,
    ),
];

/// A client's address.
fn address(client: u8, family: usize) -> IpAddr {
    let own = client + 10;
    match family {
        0 => IpAddr::from([198, 51, 100, own]),
        _ => IpAddr::from([0x2001, 0xdb8, 1, 0, 0, 0, 0, u16::from(own)]),
    }
}

/// Clients behind the host outside, which passes on packets of 1280 bytes at most.
fn clients(side: &Side) -> Namespace {
    let (outside, node) = (&side.outside, side.node.namespace());
    let far = side.namespace("far");
    outside.pair("far0", &far, "eth0").unwrap();
    outside.command("ip", &["link", "set", "far0", "mtu", "1280"]).unwrap();
    for setting in ["net/ipv4/ip_forward", "net/ipv6/conf/all/forwarding"] {
        outside.sysctl(setting, "1").unwrap();
    }
    for (family, length) in ["24", "64"].into_iter().enumerate() {
        let give = |namespace: &Namespace, address: &str, ifname: &str| {
            let address = format!("{address}/{length}");
            namespace.command("ip", &["address", "add", &address, "dev", ifname, "nodad"]).unwrap();
        };
        give(outside, ROUTER[family], "far0");
        (0..CLIENTS).for_each(|client| give(&far, &address(client, family).to_string(), "eth0"));
        far.command("ip", &["route", "add", NODE[family], "via", ROUTER[family]]).unwrap();
        node.command("ip", &["route", "add", SUBNETS[family], "via", OUTSIDE[family]]).unwrap();
    }
    far
}

/// What the container learns once this client has asked it by its host port.
fn learned(side: &Side, far: &Namespace, client: u8, family: usize) -> Learned {
    let two = &side.sandboxes[1];
    let own = (two.addresses()[family], CLOSED.1);
    let server = two.namespace().enter(|| UdpSocket::bind(own)).unwrap().unwrap();
    server.set_read_timeout(Some(patience(ANSWER))).unwrap();
    never_cut(&server);
    let asking = far.enter(|| UdpSocket::bind((address(client, family), 0))).unwrap().unwrap();
    asking.send_to(b"word", (NODE[family], CLOSED.0)).unwrap();
    let Ok((_, from)) = uninterrupted(|| server.recv_from(&mut [0; 8])) else { return Learned::NotAsked };
    let begun = Instant::now();
    while begun.elapsed() < patience(ANSWER) {
        let sent = server.send_to(&LARGE, from);
        if sent.is_err_and(|error| error.raw_os_error() == Some(libc::EMSGSIZE)) {
            return Learned::Size;
        }
        sleep(Duration::from_millis(20));
    }
    Learned::Nothing
}

/// The same is learned on both sides, and what is expected.
fn same(cases: &[Case]) {
    if lacks_reference() {
        return;
    }
    let sides = Sides::start();
    let far = sides.both().map(clients);
    let mut found = Vec::new();
    for (client, (name, rules, expected)) in (0..CLIENTS).zip(cases) {
        sides.run("clear");
        sides.run(rules);
        for (family, node) in NODE.into_iter().enumerate() {
            let [ours, reference] = sides.both();
            let of = [learned(ours, &far[0], client, family), learned(reference, &far[1], client, family)];
            found.extend((of != [*expected; 2]).then(|| format!("{name}, {node}: {of:?}")));
        }
    }
    assert!(found.is_empty(), "ours and the reference's:\n{}", found.join("\n"));
}

#[test]
fn a_container_learns_how_much_fits_a_clients_way_where_rules_let_errors_through() {
    same(&CASES[..2]);
}

#[test]
#[ignore = "takes minutes: --ignored"]
fn a_container_learns_how_much_fits_a_clients_way_as_behind_portmap() {
    same(&CASES);
}

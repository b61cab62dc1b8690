//! Datagrams that are larger than a link takes, by a port of the node: in pieces, of which only the first says the port.

use std::net::SocketAddr;

use shunt_lab::{Namespace, Protocol};
use socket2::{Domain, SockAddr, Socket, Type};

use crate::stage::{NODE, OUTSIDE, Stage, address, mapping};

/// How many fragments a namespace's own stack was to put together so far, of IPv4 and of IPv6.
pub(crate) fn put_together(namespace: &Namespace) -> [u64; 2] {
    let read = |path: &str| namespace.enter(|| std::fs::read_to_string(path).unwrap()).unwrap();
    let (v4, v6) = (read("/proc/thread-self/net/snmp"), read("/proc/thread-self/net/snmp6"));
    let mut lines = v4.lines().filter(|line| line.starts_with("Ip:")).map(str::split_whitespace);
    let (names, mut values) = (lines.next().unwrap(), lines.next().unwrap());
    let at = names.into_iter().position(|name| name == "ReasmReqds").unwrap();
    let line = v6.lines().find(|line| line.starts_with("Ip6ReasmReqds")).unwrap();
    [values.nth(at).unwrap(), line.split_whitespace().last().unwrap()].map(|count| count.parse().unwrap())
}

#[test]
fn datagrams_in_pieces_get_through_from_outside_and_from_neighbours_and_back() {
    let mut stage = Stage::new();
    stage.add("one", &[mapping(8053, 7000, "udp")]);
    stage.add("two", &[]);
    let _echo = stage.echo(0, 7000);
    let before = [put_together(stage.node.namespace()), put_together(stage.sandboxes[0].namespace())];
    for node in NODE {
        for client in [&stage.outside, stage.sandboxes[1].namespace(), stage.sandboxes[0].namespace()] {
            for length in [1473, 3000, 9000] {
                let mut talk = stage.open(client, Protocol::Udp, node, 8053);
                talk.chat(10, length).unwrap_or_else(|error| panic!("{node} {length}: {error:#}"));
            }
        }
    }
    let after = [put_together(stage.node.namespace()), put_together(stage.sandboxes[0].namespace())];
    assert_eq!(after[0], before[0], "the node has put nothing together");
    for (after, before) in after[1].into_iter().zip(before[1]) {
        assert!(after - before >= 3 * 10 * (2 + 3 + 7), "the container has: {before}, {after}");
    }
    let counted = stage.node.agent().port("one").unwrap();
    assert!(counted.from.kernel < 50, "what was translated was not left to the kernel: {counted:?}");
}

#[test]
fn a_piece_whose_first_was_never_seen_reaches_no_container() {
    let mut stage = Stage::new();
    stage.add("one", &[mapping(8053, 7000, "udp")]);
    let _echo = stage.echo(0, 7000);
    stage.open(&stage.outside, Protocol::Udp, NODE[0], 8053).chat(1, 3000).unwrap();
    let before = [put_together(stage.node.namespace()), put_together(stage.sandboxes[0].namespace())];
    let raw = || Socket::new(Domain::IPV4, Type::RAW, Some(255.into())).unwrap();
    let raw = stage.outside.enter(raw).unwrap();
    let [from, to] = [OUTSIDE[0], NODE[0]].map(address);
    for identification in 1..=50u16 {
        // The kernel writes length and checksum (raw(7)).
        let mut piece = vec![0x45, 0, 0, 0, 0, 0, 0, 100, 64, 17, 0, 0];
        piece[4..6].copy_from_slice(&identification.to_be_bytes());
        for address in [from, to] {
            let std::net::IpAddr::V4(address) = address else { panic!("IPv4 first") };
            piece.extend(address.octets());
        }
        piece.extend([0x55; 64]);
        raw.send_to(&piece, &SockAddr::from(SocketAddr::new(to, 0))).unwrap();
    }
    // What is sent behind them comes behind them.
    stage.open(&stage.outside, Protocol::Udp, NODE[0], 8053).chat(1, 100).unwrap();
    let after = [put_together(stage.node.namespace()), put_together(stage.sandboxes[0].namespace())];
    assert_eq!(after[0][0] - before[0][0], 50, "they are the node's");
    assert_eq!(after[1], before[1], "and nobody else's");
}

//! What no host port leads to is never altered: it arrives where it would without us, as it was sent.

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use shunt_lab::{Protocol, uninterrupted};

use crate::stage::{NODE, OUTSIDE, Stage, address, mapping};

/// How many are on their way at a time: fewer than a socket's buffer holds.
const BATCH: u64 = 50;
const PATIENCE: Duration = Duration::from_secs(10);

/// Numbers that look random and are the same each time (splitmix64).
pub(crate) fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[test]
fn datagrams_to_unmapped_ports_reach_the_nodes_own_sockets_as_they_were_sent() {
    nothing_is_altered(10_000);
}

#[test]
#[ignore = "takes a minute: xtask test --long"]
fn a_hundred_thousand_of_them_do() {
    nothing_is_altered(100_000);
}

fn nothing_is_altered(datagrams: u64) {
    let mut stage = Stage::new();
    stage.add("one", &[mapping(8080, 7000, "tcp"), mapping(8053, 7000, "udp")]);
    let _echo = stage.echo(0, 7000);
    let mut state = 1;
    // The node's own: ports that it has not mapped, and the number of one that is mapped for the other protocol.
    let mut ports: Vec<u16> = (0..30).map(|_| 1024 + (random(&mut state) % 60_000) as u16).collect();
    ports.retain(|port| *port != 8053);
    ports.extend([8080, 8052, 8054]);
    ports.sort_unstable();
    ports.dedup();
    let node = stage.node.namespace();
    let servers: Vec<UdpSocket> = NODE
        .into_iter()
        .flat_map(|node| ports.iter().map(move |port| SocketAddr::new(address(node), *port)))
        .map(|at| node.enter(|| UdpSocket::bind(at).unwrap()).unwrap())
        .collect();
    let clients =
        OUTSIDE.map(|at| stage.outside.enter(|| UdpSocket::bind((address(at), 0)).unwrap()).unwrap());
    let before = stage.node.agent().port("one").unwrap();
    let mut sent = Vec::new();
    for serial in 0..datagrams {
        let server = &servers[(random(&mut state) % servers.len() as u64) as usize];
        let to = server.local_addr().unwrap();
        let client = &clients[usize::from(to.is_ipv6())];
        let payload: Vec<u8> =
            serial.to_be_bytes().into_iter().chain((0..random(&mut state) % 1000).map(|n| n as u8)).collect();
        client.send_to(&payload, to).unwrap();
        sent.push((server, client.local_addr().unwrap(), payload));
        if sent.len() as u64 == BATCH {
            for (server, from, payload) in sent.drain(..) {
                server.set_read_timeout(Some(PATIENCE)).unwrap();
                let mut heard = [0; 2048];
                let (length, seen) = uninterrupted(|| server.recv_from(&mut heard)).unwrap();
                assert_eq!((seen, &heard[..length]), (from, &payload[..]));
            }
        }
    }
    let after = stage.node.agent().port("one").unwrap();
    assert_eq!(after.to.fast, before.to.fast, "nothing of it got into the container");
    assert_eq!(after.from.fast, before.from.fast);
    // And the mapped ports lead there as before.
    stage.open(&stage.outside, Protocol::Udp, NODE[0], 8053).chat(20, 1000).unwrap();
}

//! Figures of claims: the rate that is measured is the claim's, and an ADD with a claim costs what one with limits costs.

use std::net::SocketAddr;
use std::time::Duration;

use shunt_agent_api::{BridgePort, Pod};
use shunt_lab::Namespace;

use crate::cluster::{Cluster, annotated, timed};
use crate::traffic::{tcp_rate, udp_rate};

const CLAIM: f64 = 200e6;

/// What may be payload of a claim's rate, in frames of 1500 bytes, is within a twentieth of it.
fn assert_claimed(what: &str, rate: f64) {
    println!("{what}: {:.1} Mbit/s, {:+.1} %", rate / 1e6, (rate / CLAIM - 1.0) * 100.0);
    assert!((rate / CLAIM - 1.0).abs() <= 0.05, "{what}: {rate}");
}

#[test]
fn the_payload_between_neighbours_is_the_claims_rate_both_ways() {
    let mut cluster = Cluster::start();
    cluster.prepared("wire", "web", ["200M", "200M"]);
    for (number, pod) in [(2, "web"), (3, "db")] {
        let port = cluster.container(number, pod);
        cluster.rig.attach(&port).unwrap();
    }
    let end = |which: usize| -> (&Namespace, SocketAddr) {
        (&cluster.rig.containers[which], SocketAddr::from(([10, 88, 0, which as u8 + 2], 7000)))
    };
    for (way, from, to) in [("egress", 0, 1), ("ingress", 1, 0)] {
        assert_claimed(&format!("UDP, {way}"), udp_rate(end(from).0, end(to), 300_000_000));
        assert_claimed(&format!("TCP, {way}"), tcp_rate(end(from).0, end(to)));
    }
}

#[test]
fn an_add_with_a_claim_costs_little_more_than_one_with_the_same_limits() {
    const TURNS: usize = 60;
    let mut cluster = Cluster::start_with("admission = 'enforce'");
    cluster.prepared("wire", "web", ["100M", "100M"]);
    let claimed = cluster.container(2, "web");
    let plain = cluster.container(3, "db");
    // Of another namespace: who has neighbours with claims is looked up at the API server.
    let pod = plain.pod.clone().map(|pod| Pod { namespace: "others".into(), ..pod });
    let plain = BridgePort { bandwidth: annotated(100, 100), pod, ..plain };
    let ratio = || {
        let mut took = [Vec::new(), Vec::new()];
        for turn in 0..2 * TURNS {
            // In turns, and in either order.
            let which = usize::from(matches!(turn % 4, 1 | 2));
            let port = [&claimed, &plain][which];
            took[which].push(timed(|| cluster.rig.attach(port).unwrap()).1);
            cluster.rig.detach(port).unwrap();
        }
        let [with, without] = took.map(|mut took| {
            took.sort();
            took[TURNS / 2]
        });
        println!("attached in {with:?} with a claim, {without:?} with limits (medians of {TURNS})");
        with.div_duration_f64(without.max(Duration::from_micros(1)))
    };
    let best = (0..3).map(|_| ratio()).find(|ratio| *ratio <= 1.2);
    assert!(best.is_some(), "more than 1.2 times as long");
}

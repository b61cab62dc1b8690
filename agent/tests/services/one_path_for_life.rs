//! A connection lives on while the programs are detached and attached again, under `ct state invalid drop`: conntrack
//! must not see half of a connection.

use shunt_lab::Protocol::{Tcp, Udp};

use crate::cluster::Cluster;
use crate::hooks::detach;
use crate::rules::Mode::{self, Iptables, Nftables};

/// Enough bytes to leave every window that conntrack may remember.
const PLENTY: (u32, usize) = (200, 30_000);

/// Detaches, when the agent has been killed or has ended as asked: one that is alive would attach again.
fn take_off(cluster: &mut Cluster, is_killed: bool) {
    let programs = cluster.node.agent().status().unwrap().programs;
    assert!(!programs.is_empty());
    let agent = cluster.node.agent_mut();
    if is_killed { agent.kill() } else { agent.terminate() }.unwrap();
    detach(&cluster.node, &programs);
}

/// A new agent finds the hooks empty and fills them.
fn put_on(cluster: &mut Cluster) {
    cluster.node.restart_agent().unwrap();
    assert!(!cluster.node.agent().status().unwrap().programs.is_empty());
}

fn opened_while_attached(mode: Mode, is_killed: bool) {
    let mut cluster = Cluster::start(mode);
    let mut direct = cluster.direct(0, Tcp);
    let mut translated = cluster.to_service(2, Tcp);
    for _ in 0..2 {
        direct.chat(PLENTY.0, PLENTY.1).unwrap();
        translated.chat(PLENTY.0, PLENTY.1).unwrap();
        take_off(&mut cluster, is_killed);
        direct.chat(PLENTY.0, PLENTY.1).unwrap();
        translated.chat(PLENTY.0, PLENTY.1).unwrap();
        put_on(&mut cluster);
    }
    direct.chat(PLENTY.0, PLENTY.1).unwrap();
    translated.chat(PLENTY.0, PLENTY.1).unwrap();
}

fn opened_while_detached(mode: Mode, is_killed: bool) {
    let mut cluster = Cluster::start(mode);
    take_off(&mut cluster, is_killed);
    let mut direct = cluster.direct(0, Tcp);
    let mut translated = cluster.to_service(2, Tcp);
    for _ in 0..2 {
        direct.chat(PLENTY.0, PLENTY.1).unwrap();
        translated.chat(PLENTY.0, PLENTY.1).unwrap();
        put_on(&mut cluster);
        direct.chat(PLENTY.0, PLENTY.1).unwrap();
        translated.chat(PLENTY.0, PLENTY.1).unwrap();
        take_off(&mut cluster, is_killed);
    }
    direct.chat(PLENTY.0, PLENTY.1).unwrap();
    translated.chat(PLENTY.0, PLENTY.1).unwrap();
}

#[test]
fn a_connection_opened_while_attached_survives_with_iptables() {
    opened_while_attached(Iptables, false);
    opened_while_attached(Iptables, true);
}

#[test]
fn a_connection_opened_while_attached_survives_with_nftables() {
    opened_while_attached(Nftables, false);
    opened_while_attached(Nftables, true);
}

#[test]
fn a_connection_opened_while_detached_survives_with_iptables() {
    opened_while_detached(Iptables, false);
    opened_while_detached(Iptables, true);
}

#[test]
fn a_connection_opened_while_detached_survives_with_nftables() {
    opened_while_detached(Nftables, false);
    opened_while_detached(Nftables, true);
}

#[test]
fn new_flows_are_fast_again_after_the_programs_are_back() {
    let mut cluster = Cluster::start(Nftables);
    take_off(&mut cluster, false);
    cluster.direct(0, Tcp).chat(20, 1000).unwrap();
    put_on(&mut cluster);
    let mut fresh = cluster.direct(0, Udp);
    fresh.say(100).unwrap();
    let before = cluster.sent("client");
    fresh.chat(300, 500).unwrap();
    let after = cluster.sent("client");
    let [fast, all] = [0, 1].map(|at| after[at] - before[at]);
    assert!(all >= 300 && fast * 100 >= all * 99, "{fast} of {all}");
}

//! Traffic arrives unaltered, and takes the path that it should.

use std::net::{SocketAddr, UdpSocket};

use shunt_agent_api::PortReport;
use shunt_lab::{Conversation, Protocol, Sandbox, is_emulated};

use crate::stage::Stage;

/// Messages of a conversation whose packets are counted.
const ROUNDS: u32 = 300;

/// Of what the container sent since `before`, the share that took the fast path, in percent.
fn fast_percent(before: &PortReport, after: &PortReport) -> f64 {
    let fast = after.from.fast - before.from.fast;
    let kernel = after.from.kernel - before.from.kernel;
    let dropped = after.from.dropped - before.from.dropped;
    assert!(fast + kernel >= u64::from(ROUNDS), "too little was counted: {before:?} {after:?}");
    100.0 * fast as f64 / (fast + kernel + dropped) as f64
}

#[test]
fn three_containers_talk_over_both_families_and_both_protocols() {
    let stage = Stage::set();
    for client in 0..3 {
        for server in 0..3 {
            stage.assert_talk(client, server);
        }
    }
}

#[test]
fn ninety_nine_of_a_hundred_packets_take_the_fast_path_after_the_first() {
    let stage = Stage::set();
    for address in stage.sandboxes[1].addresses() {
        let echo = stage.sandboxes[1].echo(address, 7000).unwrap();
        for protocol in [Protocol::Tcp, Protocol::Udp] {
            let mut talk = stage.sandboxes[0].talk_to(protocol, &echo).unwrap();
            talk.say(100).unwrap();
            let agent = stage.node.agent();
            let before = ["one", "two"].map(|id| agent.port(id).unwrap());
            talk.chat(ROUNDS, 1000).unwrap();
            let after = ["one", "two"].map(|id| agent.port(id).unwrap());
            for (before, after) in before.iter().zip(&after) {
                let percent = fast_percent(before, after);
                assert!(percent >= 99.0, "{percent}% of {} over {protocol:?} to {address}", after.container);
            }
        }
    }
}

#[test]
fn what_one_sends_on_the_fast_path_is_what_the_other_gets() {
    let stage = Stage::set();
    let echo = stage.echo(1, 7000);
    let mut talk = stage.sandboxes[0].talk_to(Protocol::Udp, &echo).unwrap();
    talk.say(100).unwrap();
    let agent = stage.node.agent();
    let before = ["one", "two"].map(|id| agent.port(id).unwrap());
    talk.chat(ROUNDS, 1000).unwrap();
    let after = ["one", "two"].map(|id| agent.port(id).unwrap());
    let deltas = [0, 1].map(|at| {
        let (before, after) = (&before[at], &after[at]);
        [after.from.fast - before.from.fast, after.to.fast - before.to.fast]
    });
    assert_eq!(deltas[0][0], deltas[1][1], "from one = to two");
    assert_eq!(deltas[1][0], deltas[0][1], "from two = to one");
    assert!(deltas[0][0] >= u64::from(ROUNDS));
}

/// What goes through the receiver's port instead of into its peer arrives too, but at a kernel bridge's price.
#[test]
fn the_fast_path_leads_into_the_container_and_not_through_its_port() {
    let stage = Stage::set();
    let echo = stage.echo(1, 7000);
    let mut talk = stage.sandboxes[0].talk_to(Protocol::Udp, &echo).unwrap();
    talk.say(100).unwrap();
    let through_the_port = || {
        let port = stage.node.agent().port("two").unwrap().host_ifname;
        let show = ["-json", "-statistics", "link", "show", &port];
        let links = stage.node.namespace().command("ip", &show).unwrap();
        let links: serde_json::Value = serde_json::from_str(&links).unwrap();
        links[0]["stats64"]["tx"]["packets"].as_u64().unwrap()
    };
    let before = through_the_port();
    talk.chat(ROUNDS, 1000).unwrap();
    // Multicast still comes that way.
    assert!(through_the_port() - before < u64::from(ROUNDS) / 10);
}

#[test]
fn the_node_and_its_containers_talk_by_the_kernels_way() {
    let stage = Stage::set();
    stage.node.settle().unwrap();
    for address in stage.sandboxes[0].addresses() {
        let echo = stage.sandboxes[0].echo(address, 7000).unwrap();
        for protocol in [Protocol::Tcp, Protocol::Udp] {
            let talk = Conversation::open(stage.node.namespace(), protocol, echo.address());
            talk.and_then(|mut talk| talk.chat(50, 1200)).unwrap();
        }
    }
    assert!(stage.node.agent().port("one").unwrap().to.kernel > 0);
}

#[test]
fn a_fragmented_datagram_arrives() {
    let stage = Stage::set();
    for address in stage.sandboxes[1].addresses() {
        let echo = stage.sandboxes[1].echo(address, 7000).unwrap();
        let mut talk = stage.sandboxes[0].talk_to(Protocol::Udp, &echo).unwrap();
        talk.chat(10, 9000).unwrap();
    }
}

#[test]
fn containers_of_two_networks_reach_each_other_through_the_node() {
    let mut stage = Stage::set();
    stage.network = stage.node.network("others", "cni1", &["10.78.0.0/24", "fd78::/64"]);
    stage.add("elsewhere");
    stage.node.settle().unwrap();
    stage.assert_talk(0, 3);
    stage.assert_talk(3, 1);
    assert_eq!(stage.node.agent().port("elsewhere").unwrap().network, "others");
}

/// What an interface that cannot send yet drops is an ARP request, and the next one comes a second later.
#[test]
fn nothing_that_a_container_sends_is_lost_once_its_add_has_returned() {
    let mut stage = Stage::empty();
    stage.add("receiver");
    let there = SocketAddr::new(stage.sandboxes[0].addresses()[0], 7000);
    // A second for each, where the processor is emulated.
    let rounds = if is_emulated() { 6 } else { 60 };
    for round in 0..rounds {
        let id = format!("sender-{round}");
        let sender = Sandbox::start(&stage.lab, &stage.node, &stage.network, &id).unwrap();
        let dropped = sender.namespace().enter(|| {
            // What the kernel itself said while the interface came up.
            let before = dropped_by("eth0");
            UdpSocket::bind("0.0.0.0:0").unwrap().send_to(b"at once", there).unwrap();
            dropped_by("eth0") - before
        });
        assert_eq!(dropped.unwrap(), 0, "by the {round}th container");
        sender.delete(&stage.node, &stage.network).unwrap();
    }
}

/// Packets that an interface of the calling thread's namespace did not send (`net/dev`, the fourth figure of the sent).
fn dropped_by(ifname: &str) -> u64 {
    let table = std::fs::read_to_string("/proc/thread-self/net/dev").unwrap();
    let figures = table.lines().find_map(|line| line.trim().strip_prefix(ifname)?.strip_prefix(':')).unwrap();
    figures.split_whitespace().nth(11).unwrap().parse().unwrap()
}

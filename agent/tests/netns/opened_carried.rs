//! Host ports that the kernel opens, behind others' rules: connections that last are carried by the programs, and others' rules go on being asked.

use std::net::{IpAddr, UdpSocket};
use std::thread::sleep;
use std::time::{Duration, Instant};

use shunt_lab::{Conversation, Echo, Protocol, patience};
use shunt_netlink::conntrack::{Tuple, forget, tracked_connections};

use crate::heeded::nft;
use crate::opened::{BOTH, HEED, HOST_PORT, INNER_PORT, NODE, NOTICED, Opened};

/// Longer than connection tracking takes to call datagrams assured.
pub(crate) const ASSURED: Duration = Duration::from_millis(2_200);

/// Others' rules: what is invalid is counted, and who may use the host port is asked.
pub(crate) const RULES: &str =
    "table inet engine { chain forward { type filter hook forward priority 0; policy drop;
    ct state invalid counter drop; ct status dnat counter accept; }; }";

/// A node with these rules, whose kernel opens the host port, and servers behind that.
pub(crate) fn set() -> (Opened, Vec<Echo>) {
    let opened = Opened::set(HEED);
    nft(&opened.stage, RULES);
    opened.until_opened(true);
    let two = &opened.stage.sandboxes[1];
    let echoes = two.addresses().into_iter().map(|ip| two.echo(ip, INNER_PORT).unwrap()).collect();
    (opened, echoes)
}

/// The parts of what the container gets and sends meanwhile that take the fast path.
pub(crate) fn shares(opened: &Opened, meanwhile: impl FnOnce()) -> [f64; 2] {
    let port = || opened.stage.node.agent().port("two").unwrap();
    let before = port();
    meanwhile();
    let after = port();
    let share = |[fast, kernel]: [u64; 2]| fast as f64 / (fast + kernel).max(1) as f64;
    [
        share([after.to.fast - before.to.fast, after.to.kernel - before.to.kernel]),
        share([after.from.fast - before.from.fast, after.from.kernel - before.from.kernel]),
    ]
}

/// Goes on until most of both directions takes the fast path.
pub(crate) fn until_carried(opened: &Opened, talk: &mut Conversation, what: &str) {
    let begun = Instant::now();
    loop {
        let shares = shares(opened, || talk.chat(100, 100).unwrap());
        if shares.iter().all(|share| *share > 0.9) {
            return;
        }
        assert!(
            begun.elapsed() < patience(NOTICED),
            "{what}: {shares:?}\n{}",
            opened.stage.node.agent().log_tail()
        );
        sleep(Duration::from_millis(20));
    }
}

fn begin(opened: &Opened, protocol: Protocol, to: &str) -> Conversation {
    let mut talk = opened.talk(&opened.outside, protocol, to).unwrap();
    go_on_until_carried(opened, &mut talk, protocol, to);
    talk
}

/// The same of a conversation that has just begun.
pub(crate) fn go_on_until_carried(opened: &Opened, talk: &mut Conversation, protocol: Protocol, to: &str) {
    talk.chat(3, 100).unwrap();
    if protocol == Protocol::Udp {
        sleep(ASSURED);
    }
    until_carried(opened, talk, &format!("{to} by {protocol:?}"));
}

/// Two conversations of each protocol that are carried go on, and end.
pub(crate) fn go_on_and_end(opened: &Opened, mut talks: Vec<Conversation>) {
    assert_eq!(carried(opened), 4);
    // Over several leases, and with more than a window of bytes.
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(3) {
        for talk in &mut talks {
            talk.chat(50, 1_000).unwrap();
        }
    }
    assert_eq!(invalid(opened), 0);
    // An end gives a connection back: all of its ends are the kernel's.
    drop(talks);
    opened.until("connections of TCP have ended", || carried(opened) == 2);
    assert_eq!(invalid(opened), 0);
}

/// Goes on until an answer is waited for in vain.
pub(crate) fn until_refused(opened: &Opened, talk: &mut Conversation) {
    let begun = Instant::now();
    while talk.chat(1, 100).is_ok() {
        let log = || opened.stage.node.agent().log_tail();
        assert!(begun.elapsed() < patience(NOTICED), "still carried: {}", log());
    }
}

/// How many packets were found invalid.
pub(crate) fn invalid(opened: &Opened) -> u64 {
    let listed = opened
        .stage
        .node
        .namespace()
        .command("nft", &["list", "chain", "inet", "engine", "forward"])
        .unwrap();
    let line = listed.lines().find(|line| line.contains("ct state invalid")).expect("the rule");
    line.split("packets ").nth(1).and_then(|rest| rest.split(' ').next()).expect("a count").parse().unwrap()
}

/// The connections that the kernel has opened and the programs carry.
pub(crate) fn carried(opened: &Opened) -> usize {
    let flows = opened.stage.node.agent().ask("flows").unwrap();
    flows.as_array().expect("flows").iter().filter(|flow| flow["kernel"] == true).count()
}

#[test]
fn what_lasts_is_carried_both_ways_and_nothing_of_it_is_invalid() {
    let (opened, _echoes) = set();
    let mut talks = Vec::new();
    for to in NODE {
        talks.extend(BOTH.map(|protocol| begin(&opened, protocol, to)));
    }
    go_on_and_end(&opened, talks);
}

#[test]
fn a_rule_that_comes_ends_a_carried_connection_and_one_that_goes_lets_it_go_on() {
    let (opened, _echoes) = set();
    let mut talk = begin(&opened, Protocol::Tcp, NODE[0]);
    nft(&opened.stage, "insert rule inet engine forward ip saddr 192.0.2.9 drop");
    until_refused(&opened, &mut talk);
    nft(&opened.stage, "flush chain inet engine forward; add rule inet engine forward ct status dnat accept");
    // What was lost is sent again.
    let mut talk = begin(&opened, Protocol::Tcp, NODE[0]);
    talk.chat(10, 100).unwrap();
}

#[test]
fn rules_that_judge_each_packet_keep_host_ports_with_the_kernel() {
    let (opened, _echoes) = set();
    nft(&opened.stage, "insert rule inet engine forward ct status dnat limit rate over 100000/second drop");
    sleep(NOTICED / 2);
    let mut talk = opened.talk(&opened.outside, Protocol::Tcp, NODE[0]).unwrap();
    talk.chat(20, 100).unwrap();
    let shares = shares(&opened, || talk.chat(200, 100).unwrap());
    assert_eq!(shares, [0.0; 2]);
    nft(&opened.stage, "delete table inet engine");
    nft(&opened.stage, RULES);
    until_carried(&opened, &mut talk, "once the rate is gone");
}

#[test]
fn a_container_that_is_gone_is_carried_to_nobody() {
    let (mut opened, echoes) = set();
    let mut talk = begin(&opened, Protocol::Tcp, NODE[0]);
    let gone = opened.stage.sandboxes.pop().expect("a container");
    gone.delete(&opened.stage.node, &opened.published).unwrap();
    drop(echoes);
    assert!(talk.chat(1, 100).is_err());
    opened.until("its entries are gone", || carried(&opened) == 0);
    opened.add("next");
    let next = opened.stage.sandboxes.last().expect("a container");
    let _echoes: Vec<_> = next.addresses().into_iter().map(|ip| next.echo(ip, INNER_PORT).unwrap()).collect();
    for protocol in BOTH {
        assert!(opened.is_answered(&opened.outside, protocol, NODE[0]), "{protocol:?}");
    }
}

/// What has ended while connection tracking was asked is not carried for days.
#[test]
fn many_short_connections_leave_nothing() {
    let (opened, _echoes) = set();
    for _ in 0..80 {
        for to in NODE {
            opened.talk(&opened.outside, Protocol::Tcp, to).unwrap().chat(6, 100).unwrap();
        }
    }
    opened.until("all have ended", || carried(&opened) == 0);
    assert_eq!(invalid(&opened), 0);
}

#[test]
fn what_connection_tracking_has_forgotten_goes_by_the_kernel_and_is_carried_again() {
    let (opened, _echoes) = set();
    let mut talk = begin(&opened, Protocol::Udp, NODE[0]);
    let own = talk.own_end().unwrap();
    let asked = Tuple {
        protocol: 17,
        source: own,
        destination: (NODE[0].parse::<IpAddr>().unwrap(), HOST_PORT).into(),
    };
    let forgotten = opened.stage.node.namespace().enter(|| forget(&[asked])).unwrap().unwrap();
    assert_eq!(forgotten, 1);
    talk.chat(20, 100).unwrap();
    sleep(ASSURED);
    until_carried(&opened, &mut talk, "its next entry");
}

/// As WireGuard's, IKE's and SIP's.
#[test]
fn a_client_with_the_host_ports_own_number_is_carried() {
    let (opened, _echoes) = set();
    let client = opened.outside.enter(|| UdpSocket::bind(("192.0.2.9", HOST_PORT))).unwrap().unwrap();
    client.set_read_timeout(Some(patience(NOTICED))).unwrap();
    let begun = Instant::now();
    while carried(&opened) == 0 {
        assert!(begun.elapsed() < patience(2 * NOTICED), "{}", opened.stage.node.agent().log_tail());
        client.send_to(b"word", (NODE[0], HOST_PORT)).unwrap();
        client.recv(&mut [0; 9]).unwrap();
        sleep(Duration::from_millis(20));
    }
}

/// Its last acknowledgment was fast, so that connection tracking would wait for it for five minutes only.
#[test]
fn connection_tracking_knows_an_idle_connection_as_long_as_any() {
    let (opened, _echoes) = set();
    let mut talk = begin(&opened, Protocol::Tcp, NODE[0]);
    let own = talk.own_end().unwrap();
    // A question and its answer, after a lease.
    sleep(Duration::from_millis(1_500));
    talk.chat(1, 100).unwrap();
    let known = || {
        let all = opened.stage.node.namespace().enter(tracked_connections).unwrap().unwrap();
        all.into_iter().find(|one| one.original.source == own).map_or(0, |one| one.timeout)
    };
    let begun = Instant::now();
    while known() <= 300 {
        assert!(begun.elapsed() < patience(4 * NOTICED), "{} s", known());
        sleep(Duration::from_millis(200));
    }
}

//! What the kernel masquerades, as others have rules: connections that last are carried by the programs, and others' rules go on being asked.

use std::net::{IpAddr, SocketAddr};
use std::thread::sleep;
use std::time::{Duration, Instant};

use shunt_lab::{Conversation, Echo, Protocol, patience};
use shunt_netlink::conntrack::{Tuple, forget};

use crate::heeded::nft;
use crate::opened::{BOTH, NODE, NOTICED, OUTSIDE, Opened};
use crate::opened_carried::{
    ASSURED, go_on_and_end, go_on_until_carried, invalid, shares, until_carried, until_refused,
};

const PORT: u16 = 7100;

/// Others' rules: what is invalid is counted, and who may ask is asked.
const RULES: &str = "table inet engine { chain forward { type filter hook forward priority 0; policy drop;
    ct state invalid counter drop; ip daddr != 198.51.100.1 accept; ip6 daddr != 2001:db8::bad accept; }; }";

/// A node with rules, and somebody outside who answers.
fn set() -> (Opened, Vec<Echo>) {
    let opened = Opened::masqueraded("filters = 'auto'");
    nft(&opened.stage, RULES);
    opened.until("the kernel masquerades", || is_carrying(&opened));
    let echoes = OUTSIDE.map(|ip| Echo::listen(&opened.outside, ip.parse().unwrap(), PORT).unwrap());
    (opened, echoes.into())
}

/// Whether the programs carry what the kernel masquerades.
fn is_carrying(opened: &Opened) -> bool {
    opened.stage.node.agent().ask("status").unwrap()["filters"]["carries"] == true
}

fn talk(opened: &Opened, protocol: Protocol, to: &str) -> Conversation {
    let two = opened.stage.sandboxes[1].namespace();
    Conversation::open(two, protocol, SocketAddr::new(to.parse().unwrap(), PORT)).unwrap()
}

fn begin(opened: &Opened, protocol: Protocol, to: &str) -> Conversation {
    let mut talk = talk(opened, protocol, to);
    go_on_until_carried(opened, &mut talk, protocol, to);
    talk
}

#[test]
fn what_lasts_is_carried_both_ways_and_nothing_of_it_is_invalid() {
    let (opened, _echoes) = set();
    let mut talks = Vec::new();
    for to in OUTSIDE {
        talks.extend(BOTH.map(|protocol| begin(&opened, protocol, to)));
    }
    go_on_and_end(&opened, talks);
}

#[test]
fn a_rule_that_comes_ends_a_carried_connection_and_one_that_goes_lets_another_begin() {
    let (opened, _echoes) = set();
    let mut talk = begin(&opened, Protocol::Tcp, OUTSIDE[0]);
    nft(&opened.stage, "insert rule inet engine forward ip daddr 192.0.2.9 drop");
    until_refused(&opened, &mut talk);
    nft(&opened.stage, "flush chain inet engine forward; add rule inet engine forward accept");
    begin(&opened, Protocol::Tcp, OUTSIDE[0]).chat(10, 100).unwrap();
}

#[test]
fn rules_that_judge_each_packet_keep_what_is_masqueraded_with_the_kernel() {
    let (opened, _echoes) = set();
    nft(&opened.stage, "insert rule inet engine forward limit rate over 100000/second drop");
    sleep(NOTICED / 2);
    let mut talk = talk(&opened, Protocol::Tcp, OUTSIDE[0]);
    talk.chat(20, 100).unwrap();
    // What it gets the kernel has routed: it comes from the node.
    let [_, sent] = shares(&opened, || talk.chat(200, 100).unwrap());
    assert_eq!(sent, 0.0);
    nft(&opened.stage, "delete table inet engine");
    nft(&opened.stage, RULES);
    until_carried(&opened, &mut talk, "once the rate is gone");
}

/// Somebody takes the last rule away, and adds a first one again.
#[test]
fn connections_outlive_a_change_of_who_masquerades() {
    let (opened, _echoes) = set();
    let mut talks = BOTH.map(|protocol| begin(&opened, protocol, OUTSIDE[0]));
    let mut go_on = |what: &str| {
        let begun = Instant::now();
        while begun.elapsed() < 2 * NOTICED {
            talks
                .iter_mut()
                .for_each(|talk| talk.chat(10, 100).unwrap_or_else(|error| panic!("{what}: {error:#}")));
        }
    };
    nft(&opened.stage, "delete table inet engine");
    go_on("without rules");
    let mut begun = talk(&opened, Protocol::Tcp, OUTSIDE[0]);
    begun.chat(10, 100).unwrap();
    nft(&opened.stage, RULES);
    go_on("with rules again");
    begun.chat(10, 100).unwrap();
    assert_eq!(invalid(&opened), 0);
}

#[test]
fn what_connection_tracking_has_forgotten_goes_by_the_kernel_and_is_carried_again() {
    let (opened, _echoes) = set();
    let mut talk = begin(&opened, Protocol::Udp, OUTSIDE[0]);
    let to: IpAddr = OUTSIDE[0].parse().unwrap();
    let asked = Tuple { protocol: 17, source: talk.own_end().unwrap(), destination: (to, PORT).into() };
    let forgotten = opened.stage.node.namespace().enter(|| forget(&[asked])).unwrap().unwrap();
    assert_eq!(forgotten, 1);
    talk.chat(20, 100).unwrap();
    sleep(ASSURED);
    until_carried(&opened, &mut talk, "its next entry");
}

/// The address by which it left is the node's no more: the kernel's own connection is over, too, and another one begins by what is left.
#[test]
fn a_connection_whose_address_has_gone_is_carried_no_more() {
    let (opened, _echoes) = set();
    let node = opened.stage.node.namespace();
    node.command("ip", &["address", "add", "192.0.2.2/24", "dev", "up0"]).unwrap();
    let mut talk = begin(&opened, Protocol::Udp, OUTSIDE[0]);
    node.command("ip", &["address", "delete", &format!("{}/24", NODE[0]), "dev", "up0"]).unwrap();
    node.command("ip", &["address", "replace", "192.0.2.2/24", "dev", "up0"]).unwrap();
    let begun = Instant::now();
    while talk.chat(1, 100).is_err() {
        assert!(begun.elapsed() < patience(2 * NOTICED), "{}", opened.stage.node.agent().log_tail());
    }
}

/// Where the programs would not know the way, or not see what judges each packet, the kernel keeps all.
#[test]
fn nothing_is_carried_past_what_the_programs_do_not_ask() {
    let (opened, _echoes) = set();
    let egress = "table netdev out { chain o { type filter hook egress device up0 priority 0;
        limit rate over 100000/second drop; }; }";
    let ingress = "table netdev in { chain i { type filter hook ingress device cni0 priority 0;
        limit rate over 100000/second drop; }; }";
    let policy =
        "dir out src 203.0.113.1 dst 203.0.113.2 tmpl src 203.0.113.1 dst 203.0.113.2 proto esp mode tunnel";
    for (come, go) in [
        (format!("nft '{egress}'"), "nft delete table netdev out".to_owned()),
        (format!("nft '{ingress}'"), "nft delete table netdev in".to_owned()),
        (
            "ip rule add ipproto tcp dport 25 lookup 100".to_owned(),
            "ip rule delete ipproto tcp dport 25 lookup 100".to_owned(),
        ),
        (format!("ip xfrm policy add {policy}"), "ip xfrm policy flush".to_owned()),
    ] {
        let node = opened.stage.node.namespace();
        node.command("sh", &["-c", &come]).unwrap();
        opened.until_later(&come, || !is_carrying(&opened));
        // It stays so: what is attached for it does not change what is found.
        sleep(Duration::from_millis(2_500));
        assert!(!is_carrying(&opened), "{come}");
        node.command("sh", &["-c", &go]).unwrap();
        opened.until_later(&go, || is_carrying(&opened));
    }
}

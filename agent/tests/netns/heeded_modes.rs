//! Whose rules are asked: of a node that says nothing about it (`auto`), and of a network that says so itself (`filters`).

use std::thread::sleep;
use std::time::Duration;

use serde_json::json;
use shunt_lab::Protocol;

use crate::heeded::{echoes, nft, share, stage, talk, until, until_heeded};
use crate::stage::Stage;

/// Longer than between two of the agent's looks.
const LOOKED: Duration = Duration::from_secs(2);

/// kube-proxy's filters, by nf_tables: they refuse Services without endpoints.
const HARMLESS: &str = "table ip proxy { chain refuse { reject; };
    map empty { type ipv4_addr . inet_proto . inet_service : verdict; elements = { 10.96.0.10 . tcp . 53 : goto refuse }; };
    chain check { ip daddr . meta l4proto . th dport vmap @empty; };
    chain forward { type filter hook forward priority 0; ct state invalid drop; ct state new jump check; }; }";

/// What the rules of `HARMLESS` refuse besides.
const HARMFUL: &str = "add rule ip proxy forward udp dport 7001 drop; add rule ip proxy forward ct state established,related accept";

/// How much of a conversation by `one` takes the fast path.
fn fast(stage: &Stage) -> f64 {
    let echo = stage.sandboxes[1].echo(stage.sandboxes[1].addresses()[0], 7000).unwrap();
    share(stage, "one", || {
        talk(&stage.sandboxes[0], Protocol::Udp, echo.address()).unwrap().chat(500, 100).unwrap();
    })
}

fn ways(stage: &Stage, id: &str) -> Vec<String> {
    stage.node.agent().port(id).unwrap().kernels_way
}

#[test]
fn who_says_nothing_is_asked_for_by_rules_that_refuse_something_only() {
    let stage = stage("");
    nft(&stage, HARMLESS);
    sleep(LOOKED);
    assert_eq!(ways(&stage, "one"), Vec::<String>::new(), "nobody need be asked");
    assert_eq!(fast(&stage), 1.0, "each packet");
    let status = stage.node.agent().status().unwrap();
    let filters = status.filters.expect("it is told");
    assert_eq!((filters.mode.as_str(), filters.heeded, filters.by), ("auto", false, Vec::new()));
    assert_eq!(status.warnings, Vec::<String>::new(), "what is harmless is not bypassed");
    // A map that begins to refuse a container's address changes what the chain does.
    let two = stage.sandboxes[1].addresses()[0];
    nft(&stage, &format!("add element ip proxy empty {{ {two} . tcp . 7001 : drop }}"));
    until_heeded(&stage, "one");
    nft(&stage, &format!("delete element ip proxy empty {{ {two} . tcp . 7001 }}"));
    sleep(LOOKED);
    assert_eq!(ways(&stage, "one"), Vec::<String>::new(), "nobody need be asked any more");
    // As does a rule.
    let refused = &echoes(&stage, 7001)[0];
    let mut conversation = talk(&stage.sandboxes[0], Protocol::Udp, refused.address()).unwrap();
    conversation.chat(10, 100).unwrap();
    nft(&stage, HARMFUL);
    until(&mut conversation, false, Duration::from_secs(3));
    let filters = stage.node.agent().status().unwrap().filters.expect("it is told");
    assert_eq!(
        (filters.heeded, filters.by),
        (true, vec!["the chain forward of the table proxy (forward)".to_owned()])
    );
    let part = fast(&stage);
    assert!(part > 0.9 && part < 1.0, "what they let through is fast once they were asked: {part}");
}

#[test]
fn a_network_says_for_its_bridge_whose_rules_are_asked() {
    let mut stage = stage("filters = 'bypass'");
    nft(&stage, HARMLESS);
    nft(&stage, HARMFUL);
    sleep(LOOKED);
    assert_eq!(ways(&stage, "one"), Vec::<String>::new());
    let warnings = stage.node.agent().status().unwrap().warnings;
    assert!(warnings.iter().any(|warning| warning.contains("bypasses")), "{warnings:?}");
    stage.network = stage.network.clone().with("filters", json!("heed"));
    stage.add("four");
    for id in ["four", "one"] {
        assert!(!ways(&stage, id).is_empty(), "{id}: from its first packet");
    }
    assert_eq!(stage.node.agent().status().unwrap().warnings, Vec::<String>::new(), "nothing is bypassed");
    let part = fast(&stage);
    assert!(part > 0.9 && part < 1.0, "{part}");
    stage.node.agent_mut().kill().unwrap();
    stage.node.restart_agent().unwrap();
    assert!(!ways(&stage, "one").is_empty() && !ways(&stage, "four").is_empty(), "it is remembered");
    stage.sandboxes[3].delete(&stage.node, &stage.network).unwrap();
    sleep(LOOKED);
    assert_eq!(ways(&stage, "one"), Vec::<String>::new(), "nobody asks for it any more");
    assert_eq!(fast(&stage), 1.0);
}

#[test]
fn a_container_whose_address_rules_refuse_is_asked_for_from_its_first_packet() {
    let mut stage = stage("");
    let next = "10.77.0.5";
    nft(
        &stage,
        &format!(
            "table ip fw {{ chain forward {{ type filter hook forward priority 0; ip daddr {next} udp dport 7000 drop; }}; }}"
        ),
    );
    sleep(LOOKED);
    assert_eq!(ways(&stage, "one"), Vec::<String>::new(), "it is nobody's address");
    stage.add("four");
    assert!(
        stage.sandboxes[3].addresses().contains(&next.parse().unwrap()),
        "{:?}",
        stage.sandboxes[3].addresses()
    );
    let refused = stage.sandboxes[3].echo(next.parse().unwrap(), 7000).unwrap();
    let mut conversation = talk(&stage.sandboxes[0], Protocol::Udp, refused.address()).unwrap();
    assert!(conversation.chat(1, 100).is_err());
    stage.node.agent_mut().kill().unwrap();
    stage.node.restart_agent().unwrap();
    assert!(conversation.chat(1, 100).is_err());
    assert!(!ways(&stage, "one").is_empty());
}

/// As the reference's `ipMasq` and `portmap` have them.
const OF_PLUGINS: [&str; 8] = [
    "-N CNI-1",
    "-A POSTROUTING -s 10.77.0.0/24 -j CNI-1",
    "-A CNI-1 -d 10.77.0.0/24 -j ACCEPT",
    "-A CNI-1 ! -d 224.0.0.0/4 -j MASQUERADE",
    "-A POSTROUTING -m mark --mark 0x2000/0x2000 -j MASQUERADE",
    "-N CNI-DN",
    "-A CNI-DN -p udp --dport 7000 -j DNAT --to-destination 10.77.0.3:7001",
    "-A PREROUTING -m addrtype --dst-type LOCAL -j CNI-DN",
];

#[test]
fn translations_are_asked_for_where_neighbours_would_meet_them() {
    let stage = stage("");
    for rule in OF_PLUGINS {
        let command = format!("iptables-nft -t nat {rule}");
        stage.node.namespace().command("sh", &["-c", &command]).unwrap();
    }
    sleep(LOOKED);
    assert_eq!(ways(&stage, "one"), Vec::<String>::new(), "nobody need be asked");
    assert_eq!(fast(&stage), 1.0, "each packet");
    let [refused, led] = [7002, 7003].map(|port| echoes(&stage, port).remove(0));
    let two = led.address().ip();
    nft(
        &stage,
        &format!(
            "table ip engine {{ chain at {{ type nat hook prerouting priority -100; ip daddr {two} udp dport 7002 drop; \
             ip daddr {two} udp dport 7777 dnat to {two}:7003; }}; }}"
        ),
    );
    until_heeded(&stage, "one");
    let chat = |address| talk(&stage.sandboxes[0], Protocol::Udp, address).unwrap().chat(10, 100);
    assert!(chat(refused.address()).is_err(), "it is refused");
    chat((two, 7777).into()).unwrap();
    let part = fast(&stage);
    assert!(part > 0.9 && part < 1.0, "what they let through is fast once they were asked: {part}");
}

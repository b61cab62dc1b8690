//! Rules at hooks that the fast path bypasses: `status`, `check` and the log of each ADD name them.

use std::time::{Duration, Instant};

use serde_json::json;
use shunt_lab::patience;

use crate::stage::Stage;

/// How long a line of the log may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// A node that heeds nobody's rules, with a container that has a host port.
fn stage() -> Stage {
    let mut stage = Stage::empty_by("filters = 'bypass'\n");
    let open = stage.network.clone();
    let mapping = json!([{ "hostPort": 8080, "containerPort": 80, "protocol": "udp" }]);
    stage.network = open.clone().with("runtimeConfig", json!({ "portMappings": mapping }));
    stage.add("one");
    stage.network = open;
    stage
}

fn run(stage: &Stage, command: &str) {
    stage.node.namespace().command("sh", &["-c", command]).unwrap();
}

fn warnings(stage: &Stage) -> Vec<String> {
    stage.node.agent().status().unwrap().warnings
}

fn checked(stage: &Stage) -> Vec<String> {
    let audit = stage.node.agent().ask("check").unwrap();
    assert_eq!(audit["consistent"], true, "{audit}");
    serde_json::from_value(audit["warnings"].clone()).unwrap()
}

#[test]
fn rules_at_every_bypassed_hook_are_named_by_status_check_and_the_log_of_an_add() {
    let mut stage = stage();
    assert_eq!((warnings(&stage), checked(&stage)), (Vec::new(), Vec::new()));
    let host_end = stage.node.agent().port("one").unwrap().host_ifname;
    let drop = "udp dport 8080 drop";
    let (mapped, bridged) = ("traffic to host ports", "traffic between containers of one bridge");
    let node = "traffic from the node to containers";
    let device = format!("filter hook ingress device {host_end} priority 0;");
    let cases = [
        (mapped, "ip", "filter hook prerouting priority -300;", drop, "prerouting"),
        (mapped, "inet", "filter hook prerouting priority -150;", drop, "prerouting"),
        (mapped, "ip", "filter hook postrouting priority -150;", drop, "postrouting"),
        (mapped, "ip6", "filter hook forward priority 0;", drop, "forward"),
        (bridged, "bridge", "filter hook prerouting priority 0;", "drop", "prerouting"),
        (bridged, "bridge", "filter hook forward priority 0;", "drop", "forward"),
        (bridged, "bridge", "filter hook postrouting priority 0;", "ether type arp drop", "postrouting"),
        (node, "bridge", "filter hook output priority 0;", "ether type arp drop", "output"),
        (bridged, "netdev", &device, drop, "ingress of"),
    ];
    for (index, (traffic, family, chain, rule, hook)) in cases.into_iter().enumerate() {
        let table = format!("admin{index}");
        run(&stage, &format!("nft add table {family} {table}"));
        run(&stage, &format!("nft 'add chain {family} {table} some {{ type {chain} }}'"));
        run(&stage, &format!("nft add rule {family} {table} some {rule}"));
        let who = format!("bypasses the chain some of the table {table} ({hook}");
        let is_named = |said: &str| said.contains(traffic) && said.contains(&who);
        for (where_, said) in [("status", warnings(&stage)), ("check", checked(&stage))] {
            assert!(said.iter().any(|said| is_named(said)), "{family} {hook}: {where_} says {said:?}");
        }
        let id = format!("after{index}");
        let added = if family == "bridge" || family == "netdev" { None } else { Some(stage.add(&id)) };
        if added.is_some() {
            // The log is written beside the agent's work.
            let begun = Instant::now();
            while !stage.node.agent().log_tail().lines().any(|line| is_named(line) && line.contains(&id)) {
                let log = || stage.node.agent().log_tail();
                assert!(begun.elapsed() < patience(PATIENCE), "{family} {hook}: {}", log());
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        run(&stage, &format!("nft delete table {family} {table}"));
        assert_eq!((warnings(&stage), checked(&stage)), (Vec::new(), Vec::new()), "{family} {hook}");
    }
}

#[test]
fn tables_of_legacy_iptables_are_named_as_well() {
    let stage = stage();
    run(&stage, "iptables-legacy -t raw -A PREROUTING -p udp --dport 8080 -j DROP");
    run(&stage, "ip6tables-legacy -t mangle -A POSTROUTING -p udp --dport 8080 -j DROP");
    let said = warnings(&stage);
    for who in
        ["iptables' table raw, by /proc/net/ip_tables_names", "table mangle, by /proc/net/ip6_tables_names"]
    {
        assert!(
            said.iter().any(|said| said.starts_with("traffic to host ports") && said.contains(who)),
            "{said:?}"
        );
    }
}

//! Who has rules at a bypassed hook is found, in namespaces of nf_tables and of legacy iptables.

use std::process::Command;

use nix::sched::{CloneFlags, unshare};

use super::*;

/// Who is found after these commands, in a namespace that goes with its thread, has a veth `host0` and an uplink `up0`, and does not show
/// bridged packets to IP's rules unless `shown`.
fn found_after(commands: &[String], shown: &str) -> Bypassed {
    std::thread::scope(|scope| {
        let finder = scope.spawn(|| {
            unshare(CloneFlags::CLONE_NEWNET).expect("root may make a network namespace");
            for path in BRIDGED_TOO {
                // Where there is no br_netfilter, there is nothing to switch.
                drop(fs::write(path, shown));
            }
            let links = ["ip link add host0 type veth peer name up0".to_owned()];
            for command in links.iter().chain(commands) {
                let done = Command::new("sh").args(["-c", command]).status().expect("a shell runs");
                assert!(done.success(), "{command}");
            }
            let names = |name: &str| BTreeSet::from([name.to_owned()]);
            let crossed = Crossed {
                ports: names("host0"),
                ways_in: names("up0"),
                bridges: names("br0"),
                ..Crossed::default()
            };
            bypassed_of(&chains().unwrap(), &crossed.with_rules().unwrap())
        });
        finder.join().unwrap()
    })
}

/// A chain with a rule that drops.
fn dropping(family: &str, chain: &str) -> Vec<String> {
    vec![
        format!("nft add table {family} admin"),
        format!("nft 'add chain {family} admin some {{ type {chain} }}'"),
        format!("nft add rule {family} admin some drop"),
    ]
}

const WHO: &str = "the chain some of the table admin";

#[test]
fn rules_at_each_hook_of_ip_are_bypassed_by_host_ports() {
    for family in ["ip", "ip6", "inet"] {
        for (hook, priority) in
            [("prerouting", -300), ("prerouting", -150), ("forward", 0), ("postrouting", -150)]
        {
            let commands = dropping(family, &format!("filter hook {hook} priority {priority};"));
            let expected = Bypassed { host_ports: vec![format!("{WHO} ({hook})")], ..Bypassed::default() };
            assert_eq!(found_after(&commands, "0"), expected, "{family}");
        }
        for hook in ["input", "output"] {
            let commands = dropping(family, &format!("filter hook {hook} priority 0;"));
            assert_eq!(
                found_after(&commands, "0"),
                Bypassed::default(),
                "{family} {hook}: for the node only"
            );
        }
    }
}

#[test]
fn rules_of_ip_are_bypassed_by_bridged_packets_where_they_would_be_shown_them() {
    let commands = dropping("ip", "filter hook prerouting priority -300;");
    let who = vec![format!("{WHO} (prerouting)")];
    // Without br_netfilter nothing is shown.
    let bridged = if fs::metadata(BRIDGED_TOO[0]).is_ok() { who.clone() } else { Vec::new() };
    let expected = Bypassed { host_ports: who, bridged, ..Bypassed::default() };
    assert_eq!(found_after(&commands, "1"), expected);
}

#[test]
fn a_bridge_may_show_its_packets_to_the_rules_of_ip_by_itself() {
    // Without br_netfilter nothing is shown.
    if fs::metadata(BRIDGED_TOO[0]).is_err() {
        return;
    }
    let by = |family: &str, bridge: &str, setting: &str| {
        let mut commands = dropping(family, "filter hook forward priority 0;");
        commands.push(format!("ip link add {bridge} type bridge {setting}"));
        !found_after(&commands, "0").bridged.is_empty()
    };
    for (family, setting) in
        [("ip", "nf_call_iptables"), ("inet", "nf_call_iptables"), ("ip6", "nf_call_ip6tables")]
    {
        assert!(by(family, "br0", &format!("{setting} 1")), "{family}");
        assert!(!by(family, "br0", &format!("{setting} 0")), "{family}");
        assert!(!by(family, "br1", &format!("{setting} 1")), "{family}: another's bridge");
    }
    assert!(!by("ip6", "br0", "nf_call_iptables 1"));
}

#[test]
fn rules_at_each_hook_of_bridges_are_bypassed() {
    for hook in ["prerouting", "forward", "postrouting"] {
        let found = found_after(&dropping("bridge", &format!("filter hook {hook} priority 0;")), "0");
        let bridged = vec![format!("{WHO} ({hook})")];
        // What the node sends comes out of the bridge as everything does.
        let from_node = if hook == "postrouting" { bridged.clone() } else { Vec::new() };
        assert_eq!(found, Bypassed { bridged, from_node, ..Bypassed::default() });
    }
    let found = found_after(&dropping("bridge", "filter hook output priority 0;"), "0");
    assert_eq!(found, Bypassed { from_node: vec![format!("{WHO} (output)")], ..Bypassed::default() });
}

#[test]
fn rules_at_the_hooks_of_interfaces_are_bypassed_by_what_crosses_them() {
    let chain = |hook: &str, device: &str| format!("filter hook {hook} device {device} priority 0;");
    for (family, hook) in [("netdev", "ingress"), ("netdev", "egress"), ("inet", "ingress")] {
        let who = vec![format!("{WHO} ({hook} of host0)")];
        let from_node = if hook == "egress" { who.clone() } else { Vec::new() };
        let expected = Bypassed { host_ports: who.clone(), bridged: who, from_node };
        assert_eq!(found_after(&dropping(family, &chain(hook, "host0")), "0"), expected, "{family} {hook}");
    }
    let found = found_after(&dropping("netdev", &chain("ingress", "up0")), "0");
    let who = vec![format!("{WHO} (ingress of up0)")];
    assert_eq!(found, Bypassed { host_ports: who, ..Bypassed::default() });
    assert_eq!(found_after(&dropping("netdev", &chain("ingress", "lo")), "0"), Bypassed::default());
}

#[test]
fn translations_are_met_by_bridged_packets_and_empty_chains_by_nobody() {
    let nat = [
        "nft add table ip admin",
        "nft 'add chain ip admin nat { type nat hook prerouting priority -100; }'",
    ];
    let rule = "nft add rule ip admin nat dnat to 10.0.0.1";
    let commands = [nat[0], nat[1], rule].map(str::to_owned);
    assert_eq!(found_after(&commands, "0"), Bypassed::default());
    if fs::metadata(BRIDGED_TOO[0]).is_ok() {
        let bridged = vec!["the chain nat of the table admin (prerouting)".to_owned()];
        assert_eq!(found_after(&commands, "1"), Bypassed { bridged, ..Bypassed::default() });
    }
    let empty = "nft 'add chain ip admin raw { type filter hook prerouting priority -300; }'";
    assert_eq!(found_after(&[nat[0], empty].map(str::to_owned), "0"), Bypassed::default());
}

#[test]
fn tables_of_legacy_iptables_are_told_by_their_names() {
    for (program, path) in ["iptables-legacy", "ip6tables-legacy"].into_iter().zip(OLD_TABLES) {
        for table in ["raw", "mangle"] {
            let command = format!("{program} -t {table} -A PREROUTING -p udp -j DROP");
            let expected = format!("iptables' table {table}, by {path}");
            assert_eq!(found_after(&[command], "0").host_ports, [expected]);
        }
        let translating = [format!("{program} -t nat -L")];
        assert_eq!(found_after(&translating, "0"), Bypassed::default());
        if fs::metadata(BRIDGED_TOO[0]).is_ok() {
            assert_eq!(found_after(&translating, "1").bridged, [format!("iptables' table nat, by {path}")]);
        }
    }
}

#[test]
fn of_a_nodes_ports_those_are_named_that_a_chain_is_at() {
    let chain = |devices: &[&str]| BaseChain {
        family: libc::NFPROTO_NETDEV as u8,
        hook: 0,
        priority: 0,
        table: "admin".to_owned(),
        name: "some".to_owned(),
        rules: 1,
        policy: None,
        kind: "filter".to_owned(),
        devices: devices.iter().map(|name| (*name).to_owned()).collect(),
    };
    let ports = ["veth1", "veth2", "up0"].map(str::to_owned);
    let named = |chains: &[BaseChain]| with_chains(ports.iter(), chains).into_iter().collect::<Vec<_>>();
    // Nobody is asked for the name of a port where no chain is at any interface.
    let unasked = ports.iter().inspect(|name| panic!("{name} was looked at"));
    assert!(with_chains(unasked, &[chain(&[])]).is_empty());
    assert_eq!(named(&[chain(&["veth2"]), chain(&[])]), ["veth2"]);
    assert_eq!(named(&[chain(&["up0"]), chain(&["veth*"])]), ["up0", "veth1", "veth2"]);
}

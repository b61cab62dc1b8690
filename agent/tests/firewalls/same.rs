//! Each kind of rule sets on a pair of nodes of its own, and all of them with more changes and other leases.

use std::path::Path;

use shunt_lab::{Lacking, skip};

use crate::rules::{CHANGES, bridge, engines, forward, iptables, judging, queues, states, sudden, who};
use crate::trial::{RuleSet, Trials};

/// The lease is long enough for the packets of one phase.
const FILE: &str = "filters = 'heed'\nfilter_lease = '300ms'";

/// Those whose name has this, for whoever looks for a difference.
const WANTED: &str = "SHUNT_RULE_SET";

fn same(sets: &[RuleSet]) {
    let found = found(FILE, sets);
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Whether there is no reference to compare with, which is a skip.
pub(crate) fn lacks_reference() -> bool {
    let lacks = !Path::new("/usr/lib/cni/bridge").is_file();
    if lacks {
        skip(Lacking::Package("containernetworking-plugins"));
    }
    lacks
}

fn found(file: &str, sets: &[RuleSet]) -> Vec<String> {
    if lacks_reference() {
        return Vec::new();
    }
    let wanted = std::env::var(WANTED).unwrap_or_default();
    let sets: Vec<RuleSet> = sets.iter().filter(|set| set.name.contains(&wanted)).copied().collect();
    if sets.is_empty() { Vec::new() } else { Trials::start(file).all(&sets) }
}

#[test]
fn rules_of_states_let_the_same_through() {
    same(states::SETS);
}

#[test]
fn rules_of_addresses_and_ports_let_the_same_through() {
    same(who::SETS);
}

#[test]
fn rules_that_judge_each_packet_let_the_same_through() {
    same(judging::SETS);
}

#[test]
fn rules_of_iptables_let_the_same_through() {
    same(iptables::SETS);
}

#[test]
fn queues_let_the_same_through() {
    same(queues::SETS);
}

#[test]
fn rules_of_frames_let_the_same_through() {
    same(bridge::SETS);
}

#[test]
fn rules_of_engines_let_the_same_through() {
    same(engines::SETS);
}

#[test]
fn rules_that_come_and_go_let_the_same_through() {
    same(sudden::SETS);
}

/// The oracle sees what it is for: an agent that passes rules by lets through what they refuse.
#[test]
fn rules_that_are_bypassed_are_a_difference() {
    if lacks_reference() {
        return;
    }
    let refusing = forward!("accept", "th dport 7001 drop");
    let found = Trials::start("filters = 'bypass'").all(&[RuleSet::any("a port", refusing, &[])]);
    assert!(found.iter().any(|it| it.contains("two hears +1 of \"Tcp4 one→two:7001")), "{found:?}");
    assert!(found.iter().any(|it| it.contains("two hears +1 of \"Udp6 one→two:7001")), "{found:?}");
}

/// Changes of rules are heard of, so the lease does not matter: each rule set and each of these changes.
#[test]
#[ignore = "takes minutes: xtask test --long"]
fn with_each_change_and_any_lease_the_same_is_let_through() {
    let kinds = [states::SETS, who::SETS, judging::SETS, iptables::SETS, bridge::SETS, engines::SETS];
    let mut differences = Vec::new();
    for lease in ["50ms", "10s"] {
        let file = format!("filters = 'heed'\nfilter_lease = '{lease}'");
        std::thread::scope(|scope| {
            let run = |sets: &'static [RuleSet]| {
                // What nobody hears of is heeded within the lease.
                let is_tried = |set: &&RuleSet| set.leaves_nothing() && (lease != "10s" || set.is_heard_of());
                let sets = sets.iter().filter(is_tried);
                let sets: Vec<_> = sets
                    .map(|set| RuleSet { changes: CHANGES, speed: set.speed_of_each(), ..*set })
                    .collect();
                let file = &file;
                scope.spawn(move || found(file, &sets))
            };
            let running = kinds.map(run);
            differences.extend(running.into_iter().flat_map(|it| it.join().unwrap()));
        });
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

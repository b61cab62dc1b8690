//! Each kind of rule sets on a pair of nodes of its own.

use crate::rules::{bridge, engines, iptables, judging, queues, states, sudden, who};
use crate::trial::{FILE, RuleSet, Trials};

fn same(sets: &[RuleSet]) {
    // One of them alone, by a part of its name: for whoever looks for a difference.
    let wanted = std::env::var("SHUNT_RULE_SET").unwrap_or_default();
    let sets: Vec<RuleSet> = sets.iter().filter(|set| set.name.contains(&wanted)).copied().collect();
    if !sets.is_empty() {
        Trials::start(FILE).all(&sets);
    }
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

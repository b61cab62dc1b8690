//! Host ports under others' rules: the same questions to a node with shunt, whose agent heeds rules, and to one with the reference's `bridge` and `portmap`, from
//! outside, from a neighbour, from the node itself and from the container that the port leads to. And what containers ask of a host outside, masqueraded.

use std::thread::{scope, sleep};
use std::time::Duration;

use crate::linked::Side;
use crate::questions::{Question, answers, to_host_ports, to_the_outside};
use crate::rules::{engines, iptables, published, shapes, states, ways, who};
use crate::same::lacks_reference;
use crate::trial::RuleSet;

/// The agent's file: everybody's rules are asked, and the kernel masquerades from the first connection on. By itself the agent would look every few seconds
/// whether somebody has rules.
const FILE: &str = "filters = 'heed'\nfilter_host_ports = true\nmasquerade = 'kernel'";

/// How often a question that may have been lost is asked again.
const AGAIN: usize = 2;

/// Longer than until the agent has looked at rules that have come: it does each second.
const LOOK: Duration = Duration::from_millis(1500);

/// The two nodes.
pub(crate) struct Sides {
    pub(crate) ours: Side,
    pub(crate) reference: Side,
}

impl Sides {
    pub(crate) fn start() -> Self {
        let [ours, reference] = scope(|threads| {
            [Some(FILE), None]
                .map(|file| threads.spawn(move || Side::masqueraded(file).with_tellers()))
                .map(|it| it.join().unwrap())
        });
        Self { ours, reference }
    }

    pub(crate) fn both(&self) -> [&Side; 2] {
        [&self.ours, &self.reference]
    }

    /// Runs a shell's script in both nodes.
    pub(crate) fn run(&self, script: &str) {
        scope(|threads| {
            for side in self.both() {
                threads.spawn(move || side.run(script));
            }
        });
    }

    /// What differs in what both answer, and how much the reference does.
    pub(crate) fn compare(&self, questions: &[Question]) -> (Vec<String>, usize) {
        let [ours, reference] = scope(|threads| {
            self.both()
                .map(|side| threads.spawn(move || answers(side, questions)))
                .map(|it| it.join().unwrap())
        });
        let answered = reference.iter().flatten().count();
        let each = questions.iter().zip(ours).zip(reference);
        let found = each.filter_map(|((it, ours), reference)| self.difference(it, ours, reference));
        (found.collect(), answered)
    }

    /// A question or its answer may be lost: who was not answered where the other was asks again. What was answered stays so, but for what was asked before
    /// the agent had looked at the rules.
    fn difference(
        &self,
        question: &Question,
        mut ours: Option<String>,
        mut reference: Option<String>,
    ) -> Option<String> {
        for _ in 0..AGAIN {
            match (ours.is_some(), reference.is_some()) {
                (false, true) => ours = question.ask(&self.ours),
                (true, false) => reference = question.ask(&self.reference),
                _ => break,
            }
        }
        if ours.is_some() && reference.is_none() {
            sleep(LOOK);
            ours = question.ask(&self.ours);
        }
        (ours != reference).then(|| {
            let [ours, reference] = [ours, reference].map(|it| it.unwrap_or_else(|| "nothing".to_owned()));
            format!("{question}: {ours}, by the reference {reference}")
        })
    }
}

/// What differs under these rule sets and their changes.
fn differences(sets: &[RuleSet]) -> Vec<String> {
    let (sides, questions) = (Sides::start(), [to_host_ports(), to_the_outside()].concat());
    let mut found = Vec::new();
    for set in sets {
        let scripts = [&["clear", set.rules][..], set.changes].concat();
        for (at, script) in scripts.iter().enumerate() {
            sides.run(script);
            let (differ, answered) = sides.compare(&questions);
            found.extend(differ.iter().map(|it| format!("{} ({at}): {it}", set.name)));
            println!("{} ({at}): {answered} of {} answered", set.name, questions.len());
        }
    }
    found
}

/// Rule sets under which the two cannot be compared: portmap marks what it masquerades (0x2000), so that what refuses marks refuses that, and a rule that
/// counts packets refuses whoever comes third of all who ask at a time.
const NOT_ALIKE: [&str; 2] = ["a mark that nobody has set", "each third packet"];

fn same(sets: &[RuleSet]) {
    if lacks_reference() {
        return;
    }
    let wanted = std::env::var("SHUNT_RULE_SET").unwrap_or_default();
    let is_meant =
        |set: &&RuleSet| set.name.contains(&wanted) && !NOT_ALIKE.iter().any(|name| set.name.contains(name));
    let sets: Vec<RuleSet> = sets.iter().filter(is_meant).copied().collect();
    let found = differences(&sets);
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn host_ports_meet_rules_as_behind_portmap() {
    same(published::SETS);
}

#[test]
fn host_ports_beside_firewalls_are_as_behind_portmap() {
    same(shapes::SETS);
}

#[test]
#[ignore = "takes minutes: --ignored"]
fn host_ports_meet_rules_at_each_place_as_behind_portmap() {
    same(ways::SETS);
}

#[test]
#[ignore = "takes minutes: --ignored"]
fn host_ports_meet_rules_of_states_and_addresses_as_behind_portmap() {
    same(&[states::SETS, who::SETS].concat());
}

#[test]
#[ignore = "takes minutes: --ignored"]
fn host_ports_meet_rules_of_iptables_and_engines_as_behind_portmap() {
    same(&[iptables::SETS, engines::SETS].concat());
}

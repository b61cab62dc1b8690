//! The attachment state machine against a simple model, with calls that fail at any moment and agents that die at any moment.
//!
//! The agent's own code runs in the test's thread, in a namespace of its own, on the real kernel; the faults are planned at
//! its failpoints. Needs root. `PROPTEST_CASES` makes it longer.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test, and its figures"
)]

#[path = "model/asked.rs"]
mod asked;
#[path = "model/containers.rs"]
mod containers;
#[allow(dead_code, reason = "the suite in namespaces has more of it")]
#[path = "netns/datagram.rs"]
mod datagram;
#[allow(dead_code, reason = "the suite in namespaces has more of it")]
#[path = "netns/estate.rs"]
mod estate;
#[path = "model/liar.rs"]
mod liar;
#[path = "model/refused.rs"]
mod refused;
#[path = "model/relocations.rs"]
mod relocations;
#[path = "model/steps.rs"]
mod steps;
#[path = "model/vlan_gateways.rs"]
mod vlan_gateways;
#[allow(dead_code, reason = "the suite in namespaces has more of it")]
#[path = "netns/wire.rs"]
mod wire;
#[path = "model/world.rs"]
mod world;

use std::collections::BTreeSet;

use nix::errno::Errno;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use shunt_agent::failpoints::{Fault, Plan};
use shunt_lab::Lab;

use crate::steps::{RICH, Step, Verb, scripts};
use crate::world::World;

/// Scripts that are run unless `PROPTEST_CASES` says otherwise.
const CASES: u32 = 6;

/// More calls than a change has.
const MOST: u32 = 400;

#[test]
fn any_sequence_of_changes_faults_deaths_and_restarts_converges_to_what_a_simple_model_says() {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(CASES);
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 60, ..Config::default() };
    let outcome =
        TestRunner::new(config).run(&scripts(), |script| play(&script).map_err(TestCaseError::fail));
    if let Err(error) = outcome {
        panic!("{error}");
    }
}

/// An agent that could not remove a file, and was then killed, would have left it to the next as an intention: the link of what
/// a GC forgets is still there.
#[test]
fn what_was_collected_with_any_call_refused_does_not_come_back_after_a_second_whoever_is_killed_then() {
    for after in 0..20 {
        let fault = Some(Plan { failpoint: None, after, fault: Fault::Refused(Errno::EBUSY) });
        let collect = Step { verb: Verb::Collect(BTreeSet::new()), fault };
        let [add, wait, restart] = [Verb::Add(0), Verb::Wait, Verb::Restart].map(Step::undisturbed);
        let script = [add, collect, wait, restart];
        play(&script).unwrap_or_else(|error| panic!("refused after {after}: {error}"));
    }
}

/// A change is several calls, and an agent may die over each: the next one looks for all that the whole change should have left.
fn dies_over(before: &[Verb], change: &Verb) {
    within(|world| {
        let calls = calls_of(world, before, change, Fault::Death)?;
        println!("{change:?} has {calls} calls");
        assert!(calls > 5, "{change:?} {calls}");
        Ok(())
    })
    .unwrap();
}

#[test]
fn whichever_call_of_an_add_an_agent_dies_over_the_next_one_leaves_nothing_undone() {
    dies_over(&[], &Verb::Add(0));
}

#[test]
fn whichever_call_of_a_collection_an_agent_dies_over_the_next_one_leaves_nothing_undone() {
    dies_over(&[Verb::Add(0)], &Verb::Collect(BTreeSet::new()));
}

#[test]
fn whichever_call_of_an_add_with_everything_an_agent_dies_over_the_next_one_leaves_nothing_undone() {
    dies_over(&[], &Verb::Add(RICH));
}

#[test]
fn whichever_call_of_a_deletion_an_agent_dies_over_the_next_one_leaves_nothing_undone() {
    dies_over(&[Verb::Add(RICH)], &Verb::Delete(RICH));
}

#[test]
fn whichever_call_of_a_restart_an_agent_dies_over_the_next_one_leaves_nothing_undone() {
    dies_over(&[Verb::Add(RICH)], &Verb::Restart);
}

/// Of what the kernel refuses in the middle of an ADD nothing is left, and the plugin hears of it: the host's end being set up, too.
#[test]
fn whichever_call_of_an_add_is_refused_nothing_of_it_is_left() {
    within(|world| {
        for key in [0, RICH] {
            let calls = calls_of(world, &[], &Verb::Add(key), Fault::Refused(Errno::EIO))?;
            assert!(calls > 5, "{key} {calls}");
        }
        Ok(())
    })
    .unwrap();
}

/// How many calls there are in a change to meet a fault at, after each of which everything was as it should be.
fn calls_of(world: &mut World, before: &[Verb], change: &Verb, fault: Fault) -> Result<u32, String> {
    for after in 0..MOST {
        for verb in before {
            world.take(&Step::undisturbed(verb.clone()))?;
        }
        let faults = world.faults;
        let plan = Some(Plan { failpoint: None, after, fault });
        let when = |error| format!("{change:?}, {fault:?} after {after}: {error}");
        world.take(&Step { verb: change.clone(), fault: plan }).map_err(when)?;
        world.settle_started().map_err(when)?;
        world.clear().map_err(when)?;
        if world.faults == faults {
            return Ok(after);
        }
    }
    Err(format!("{change:?} has more than {MOST} calls"))
}

fn play(script: &[Step]) -> Result<(), String> {
    within(|world| {
        script.iter().try_for_each(|step| world.take(step))?;
        world.settle()?;
        println!("{} steps, {} faults, {} deaths", world.steps, world.faults, world.deaths);
        world.clear()
    })
}

fn within(work: impl FnOnce(&mut World) -> Result<(), String> + Send) -> Result<(), String> {
    let lab = Lab::new().unwrap();
    let node = lab.namespace("node").unwrap();
    node.enter(|| work(&mut World::new(&lab))).unwrap()
}

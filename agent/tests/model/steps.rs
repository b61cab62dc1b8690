//! What may happen to attachments.

use std::collections::BTreeSet;

use nix::errno::Errno;
use proptest::prelude::*;
use shunt_agent::failpoints::{Failpoint, Fault, Plan};

/// Containers.
pub(crate) const KEYS: u8 = 4;

/// The one of them that asks for whatever a port of a bridge can be asked for, but VLANs and what is done inside its namespace.
pub(crate) const RICH: u8 = KEYS - 1;

/// Calls at the failpoints after which a fault may come; an attach or a start is some dozens.
const CALLS: u32 = 60;

#[derive(Clone, Debug)]
pub(crate) enum Verb {
    Add(u8),
    /// As the plugin does it: the agent forgets it, then its link is deleted.
    Delete(u8),
    Check(u8),
    /// GC: these are valid.
    Collect(BTreeSet<u8>),
    /// Time passes.
    Wait,
    Restart,
}

#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) verb: Verb,
    pub(crate) fault: Option<Plan>,
}

impl Step {
    pub(crate) fn undisturbed(verb: Verb) -> Self {
        Self { verb, fault: None }
    }
}

/// A few dozen steps.
pub(crate) fn scripts() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(steps(), 1..30)
}

fn steps() -> impl Strategy<Value = Step> {
    let verbs = prop_oneof![
        6 => (0..KEYS).prop_map(Verb::Add),
        3 => (0..KEYS).prop_map(Verb::Delete),
        1 => (0..KEYS).prop_map(Verb::Check),
        1 => prop::collection::btree_set(0..KEYS, 0..KEYS as usize).prop_map(Verb::Collect),
        1 => Just(Verb::Wait),
        1 => Just(Verb::Restart),
    ];
    (verbs, prop::option::weighted(0.5, faults())).prop_map(|(verb, fault)| Step { verb, fault })
}

fn faults() -> impl Strategy<Value = Plan> {
    let failpoint =
        prop::option::of(prop_oneof![Just(Failpoint::Netlink), Just(Failpoint::Files), Just(Failpoint::Bpf)]);
    let errno = prop_oneof![Just(Errno::EBUSY), Just(Errno::ENOSPC), Just(Errno::ENOMEM), Just(Errno::EIO)];
    let fault = prop_oneof![errno.prop_map(Fault::Refused), Just(Fault::Death)];
    // Most early: a change is few calls.
    let after = prop_oneof![3 => 0..8u32, 1 => 8..CALLS];
    (failpoint, after, fault).prop_map(|(failpoint, after, fault)| Plan { failpoint, after, fault })
}

//! Expedited RCU grace periods around single calls.
//!
//! To attach or detach a tcx link, and to delete an interface that has one, the kernel waits for a grace period with the rtnl
//! lock held (`tcx_entry_sync`, include/net/tcx.h); nf_tables commits wait for one too. A normal grace period takes many milliseconds,
//! for which nobody on the node can configure an interface; an expedited one takes a fraction of one. The kernel's switch expedites all
//! grace periods of the machine, so the agent sets it only around the one call. The switch changes how long the kernel waits, never for what.

mod policy;
mod switch;

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use shunt_agent_api::GracePeriodReport;

use self::policy::Policy;
pub use self::switch::MARK;
use self::switch::Switch;
use crate::config::GracePeriodMode;

const SYS: &str = "/sys";

/// The switch, shared by all threads of the agent.
#[derive(Clone, Debug)]
pub struct GracePeriods {
    mode: GracePeriodMode,
    policy: Policy,
    switch: Switch,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// Calls that are being made.
    calls: u32,
    /// Whether this agent has to reset the switch.
    is_set: bool,
    /// The agent ends: the switch is not set any more.
    has_ended: bool,
}

impl GracePeriods {
    /// Decides how long grace periods are, and resets the switch if a killed agent has left it set.
    pub fn open(mode: GracePeriodMode) -> Self {
        Self::below(Path::new(SYS), mode)
    }

    fn below(sys: &Path, mode: GracePeriodMode) -> Self {
        let (policy, switch) = (Policy::decide(mode, sys), Switch::of(sys));
        tracing::info!(expedited = policy.expedites, reason = policy.reason, "grace periods");
        let opened = Self { mode, policy, switch, state: Arc::default() };
        opened.reset();
        opened
    }

    /// Expedites grace periods until the guard is dropped: for one call.
    pub fn expedite(&self) -> Expedited {
        if !self.policy.expedites {
            return Expedited(None);
        }
        let mut state = locked(&self.state);
        state.calls += 1;
        if state.calls == 1 && !state.has_ended {
            // Where it cannot be set the call takes its time.
            state.is_set = self.switch.set().unwrap_or_default();
        }
        Expedited(Some(self.clone()))
    }

    /// Resets the switch for good, whatever calls are still being made: the agent ends.
    pub fn end(&self) {
        let mut state = locked(&self.state);
        state.has_ended = true;
        if std::mem::take(&mut state.is_set) {
            self.reset();
        }
    }

    /// What the agent does about grace periods.
    pub fn report(&self) -> GracePeriodReport {
        let mode = self.mode.to_string();
        match self.switch.operators() {
            Some(value) => {
                let reason = format!("the operator has set {} to {value}", self.switch.path().display());
                GracePeriodReport { mode, expedited: true, reason }
            }
            None => GracePeriodReport {
                mode,
                expedited: self.policy.expedites,
                reason: self.policy.reason.clone(),
            },
        }
    }

    fn reset(&self) {
        if let Err(error) = self.switch.reset() {
            tracing::debug!(switch = %self.switch.path().display(), %error, "cannot be reset");
        }
    }
}

/// Grace periods are expedited while this is held.
#[derive(Debug)]
#[must_use = "grace periods are expedited until it is dropped"]
pub struct Expedited(Option<GracePeriods>);

impl Drop for Expedited {
    fn drop(&mut self) {
        let Some(grace_periods) = &self.0 else { return };
        let mut state = locked(&grace_periods.state);
        state.calls -= 1;
        if state.calls == 0 && std::mem::take(&mut state.is_set) {
            grace_periods.reset();
        }
    }
}

fn locked(state: &Mutex<State>) -> MutexGuard<'_, State> {
    // Nothing panics while it is held, and if something did the state would still be true.
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::TempDir;

    use super::*;

    /// A machine with a switch of its own.
    struct Machine(TempDir);

    impl Machine {
        fn with(value: &str) -> Self {
            let machine = Self(tempfile::tempdir().unwrap());
            fs::create_dir(machine.0.path().join("kernel")).unwrap();
            machine.write(value);
            machine
        }

        fn write(&self, value: &str) {
            fs::write(self.0.path().join("kernel/rcu_expedited"), value).unwrap();
        }

        fn agent(&self) -> GracePeriods {
            GracePeriods::below(self.0.path(), GracePeriodMode::Expedite)
        }

        fn value(&self) -> String {
            fs::read_to_string(self.0.path().join("kernel/rcu_expedited")).unwrap()
        }
    }

    fn mark() -> String {
        MARK.to_string()
    }

    #[test]
    fn the_switch_is_set_for_as_long_as_a_call_is_made() {
        let machine = Machine::with("0");
        let agent = machine.agent();
        let (one, other) = (agent.expedite(), agent.clone().expedite());
        assert_eq!(machine.value(), mark());
        drop(one);
        assert_eq!(machine.value(), mark());
        drop(other);
        assert_eq!(machine.value(), "0");
    }

    #[test]
    fn an_operators_value_is_never_replaced() {
        for value in ["1", "2", "-1"] {
            let machine = Machine::with(value);
            let agent = machine.agent();
            drop(agent.expedite());
            assert_eq!(machine.value(), value);
            agent.end();
            assert_eq!(machine.value(), value);
            assert!(agent.report().expedited && agent.report().reason.contains("operator"));
        }
    }

    #[test]
    fn what_an_operator_writes_during_a_call_stays() {
        for value in ["0", "1"] {
            let machine = Machine::with("0");
            let call = machine.agent().expedite();
            machine.write(value);
            drop(call);
            assert_eq!(machine.value(), value);
        }
    }

    #[test]
    fn what_a_killed_agent_leaves_is_reset_at_the_start_of_the_next() {
        let machine = Machine::with("0");
        std::mem::forget(machine.agent().expedite());
        assert_eq!(machine.value(), mark());
        let _next = machine.agent();
        assert_eq!(machine.value(), "0");
    }

    #[test]
    fn what_a_killed_agent_leaves_is_reset_by_the_next_call_of_another() {
        let machine = Machine::with("0");
        let living = machine.agent();
        std::mem::forget(machine.agent().expedite());
        drop(living.expedite());
        assert_eq!(machine.value(), "0");
    }

    #[test]
    fn of_two_agents_whichever_finishes_first_the_switch_is_reset_in_the_end() {
        for first_finishes_first in [true, false] {
            let machine = Machine::with("0");
            let agents = (machine.agent(), machine.agent());
            let calls = (agents.0.expedite(), agents.1.expedite());
            assert_eq!(machine.value(), mark());
            let (one, other) = if first_finishes_first { calls } else { (calls.1, calls.0) };
            drop(one);
            drop(other);
            assert_eq!(machine.value(), "0");
        }
    }

    #[test]
    fn an_agent_that_ends_resets_the_switch_and_sets_it_no_more() {
        let machine = Machine::with("0");
        let agent = machine.agent();
        let call = agent.expedite();
        agent.end();
        assert_eq!(machine.value(), "0");
        let _late = agent.expedite();
        drop(call);
        assert_eq!(machine.value(), "0");
    }

    #[test]
    fn a_normal_agent_never_sets_the_switch_but_resets_a_killed_ones() {
        let machine = Machine::with(&mark());
        let agent = GracePeriods::below(machine.0.path(), GracePeriodMode::Normal);
        assert_eq!(machine.value(), "0");
        let _call = agent.expedite();
        assert_eq!(machine.value(), "0");
    }
}

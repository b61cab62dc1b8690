//! Short grace periods while programs come and go, and while masquerade rules are replaced.
//!
//! To make a tcx link, and to delete an interface that has one, the kernel waits for RCU grace periods with the lock of
//! all network configuration held (`tcx_entry_sync`, kernel/bpf/tcx.c): 8 to 20 ms each, during which nobody on the node
//! can configure an interface. Every other wait under that lock is expedited (`synchronize_net`, net/core/dev.c) and
//! takes 0.05 ms; this one was left out. The kernel has a switch that expedites all of them, and it is thrown for as long
//! as the one call takes (measured: 0.06 ms instead of 12). It changes how long anybody waits, never for what.
//!
//! Where the switch cannot be thrown (sysfs mounted read-only, a kernel without it), the calls take their time.

mod switch;

use std::io;
use std::mem::take;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use switch::{LEDGER, SWITCH, SharedSwitch};

/// The switch, for all threads of the agent.
#[derive(Clone, Debug, Default)]
pub struct GracePeriods {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// How many want short ones now.
    users: u32,
    /// Whether this agent has a share in the ledger: not while nobody wants short ones, or the switch is an operator's.
    shares: bool,
    /// What it takes, once it was wanted.
    switch: Option<SharedSwitch>,
}

impl State {
    /// Throws the switch, unless an operator has, and takes a share in the ledger.
    fn throw(&mut self) -> io::Result<()> {
        self.shares = self.switch()?.throw()?;
        Ok(())
    }

    /// Gives the share back, if this agent has one.
    fn put_back(&mut self) {
        if let (true, Some(switch)) = (take(&mut self.shares), &self.switch)
            && let Err(error) = switch.put_back()
        {
            tracing::warn!(%error, switch = SWITCH, "grace periods may stay expedited");
        }
    }

    fn switch(&mut self) -> io::Result<&mut SharedSwitch> {
        match &mut self.switch {
            Some(switch) => Ok(switch),
            none => Ok(none.insert(SharedSwitch::open()?)),
        }
    }
}

impl GracePeriods {
    /// Puts the switch back if an agent was killed while it was thrown, and no other needs it.
    pub fn recover() -> Self {
        let mut state = State::default();
        if SharedSwitch::has_ledger()
            && let Err(error) = state.switch().and_then(SharedSwitch::recover)
        {
            tracing::warn!(%error, file = LEDGER, "grace periods may stay expedited");
        }
        Self { state: Arc::new(Mutex::new(state)) }
    }

    /// Throws the switch until what is returned, or a clone of it, is released or dropped.
    pub fn expedite(&self) -> Expedited {
        let mut state = locked(&self.state);
        if state.users == 0 {
            let _takes_its_time = state.throw();
        }
        state.users += 1;
        Expedited { state: Arc::clone(&self.state), held: Arc::new(AtomicBool::new(true)) }
    }

    /// Lets go now, whoever still wants short ones: the agent ends.
    pub fn end(&self) {
        let mut state = locked(&self.state);
        state.put_back();
        if let Some(switch) = &state.switch {
            let _others_remove_it = switch.remove();
        }
    }
}

/// While this is held, grace periods are expedited. Clones are one hold: the first that lets go ends it.
#[derive(Clone, Debug)]
pub struct Expedited {
    state: Arc<Mutex<State>>,
    held: Arc<AtomicBool>,
}

impl Expedited {
    /// Whether nobody has let go yet.
    pub fn is_held(&self) -> bool {
        self.held.load(Ordering::Relaxed)
    }

    /// Lets go.
    pub fn release(&self) {
        if !self.held.swap(false, Ordering::Relaxed) {
            return;
        }
        let mut state = locked(&self.state);
        state.users -= 1;
        if state.users == 0 {
            state.put_back();
        }
    }
}

impl Drop for Expedited {
    fn drop(&mut self) {
        self.release();
    }
}

fn locked(state: &Mutex<State>) -> MutexGuard<'_, State> {
    // Nothing panics while it is held, and if something did the state would still be true.
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

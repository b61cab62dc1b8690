//! Short grace periods while programs come and go, and while masquerade rules are replaced.
//!
//! To make a tcx link, and to delete an interface that has one, the kernel waits for RCU grace periods with the lock of
//! all network configuration held (`tcx_entry_sync`, kernel/bpf/tcx.c): 8 to 20 ms each, during which nobody on the node
//! can configure an interface. Every other wait under that lock is expedited (`synchronize_net`, net/core/dev.c) and
//! takes 0.05 ms; this one was left out. The kernel has a switch that expedites all of them, and it is thrown for as long
//! as the one call takes (measured: 0.06 ms instead of 12). It changes how long anybody waits, never for what.
//!
//! Where the switch cannot be thrown (sysfs mounted read-only, a kernel without it), the calls take their time.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::FileExt as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};

const SWITCH: &str = "/sys/kernel/rcu_expedited";

/// The switch is the machine's, and so is this file: every agent that needs the switch thrown holds a shared lock on it,
/// and it says so in it who threw the switch if it was one of them. The kernel drops a dead agent's lock, so whoever
/// comes next puts the switch back.
const LEDGER: &str = "/run/shunt-grace-periods";

/// The switch, for all threads of the agent.
#[derive(Clone, Debug, Default)]
pub struct GracePeriods {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// How many want short ones now.
    users: u32,
    /// This agent's share in the ledger; none while nobody wants it, or the switch is an operator's.
    share: Option<Flock<File>>,
    /// The switch, once it was wanted. It stays open: to open it takes as long as to throw it.
    switch: Option<File>,
}

impl State {
    /// Throws the switch, unless an operator has, and takes a share in the ledger.
    fn throw(&mut self) -> io::Result<()> {
        let switch = match self.switch.take() {
            Some(switch) => switch,
            None => OpenOptions::new().read(true).write(true).open(SWITCH)?,
        };
        let thrown = throw(&switch);
        self.switch = Some(switch);
        self.share = Some(thrown?);
        Ok(())
    }

    /// Gives the share back, if this agent has one.
    fn put_back(&mut self) {
        if let Some(share) = self.share.take() {
            put_back(share);
        }
    }
}

impl GracePeriods {
    /// Puts the switch back if an agent was killed while it was thrown, and no other needs it.
    pub fn recover() -> Self {
        match File::open(LEDGER) {
            Ok(ledger) => {
                let share = Flock::lock(ledger, FlockArg::LockShared).map_err(|(_, errno)| errno);
                if let Ok(share) = share
                    && is_ours(&share).unwrap_or(false)
                {
                    put_back(share);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => tracing::warn!(%error, file = LEDGER, "cannot be read"),
        }
        Self::default()
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
        locked(&self.state).put_back();
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

fn throw(switch: &File) -> io::Result<Flock<File>> {
    let ledger = OpenOptions::new().read(true).append(true).create(true).open(LEDGER)?;
    let mut share = Flock::lock(ledger, FlockArg::LockShared).map_err(|(_, errno)| io::Error::from(errno))?;
    let mut said = [0; 1];
    switch.read_exact_at(&mut said, 0)?;
    match (said, is_ours(&share)?) {
        ([b'0'], _) => {
            share.write_all(b"thrown\n")?;
            switch.write_all_at(b"1", 0).inspect_err(|_| drop(fs::remove_file(LEDGER)))?;
            Ok(share)
        }
        (_, true) => Ok(share),
        (_, false) => {
            // An operator's: nothing to put back.
            fs::remove_file(LEDGER)?;
            Err(Errno::EALREADY.into())
        }
    }
}

/// Whether an agent has thrown the switch.
fn is_ours(ledger: &File) -> io::Result<bool> {
    let mut said = String::new();
    let mut ledger = ledger;
    ledger.read_to_string(&mut said)?;
    Ok(!said.is_empty())
}

/// Gives the share back, and puts the switch back if it was the last.
fn put_back(share: Flock<File>) {
    if share.relock(FlockArg::LockExclusiveNonblock).is_err() {
        return;
    }
    match fs::write(SWITCH, "0").and_then(|()| fs::remove_file(LEDGER)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(%error, switch = SWITCH, "grace periods may stay expedited");
        }
        _ => {}
    }
}

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
use std::io;
use std::mem::take;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const SWITCH: &str = "/sys/kernel/rcu_expedited";

/// The switch is the machine's, and so is this file: every agent that needs the switch thrown holds a shared lock on it,
/// and it says so in it who threw the switch if it was one of them. The kernel drops a dead agent's lock, so whoever
/// comes next puts the switch back. While nobody needs it the file is empty, and the last agent to end removes it.
const LEDGER: &str = "/run/shunt-grace-periods";
const THROWN: &[u8] = b"thrown\n";

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
    files: Option<Files>,
}

impl State {
    /// Throws the switch, unless an operator has, and takes a share in the ledger.
    fn throw(&mut self) -> io::Result<()> {
        self.shares = self.files()?.throw()?;
        Ok(())
    }

    /// Takes a killed agent's share over, if it had one, and gives it back.
    fn recover(&mut self) -> io::Result<()> {
        let files = self.files()?;
        match files.share().and_then(|()| files.is_ours()) {
            Ok(true) => files.put_back(),
            Ok(false) => files.ledger.unlock(),
            Err(error) => files.ledger.unlock().and(Err(error)),
        }
    }

    /// Gives the share back, if this agent has one.
    fn put_back(&mut self) {
        if let (true, Some(files)) = (take(&mut self.shares), &self.files)
            && let Err(error) = files.put_back()
        {
            tracing::warn!(%error, switch = SWITCH, "grace periods may stay expedited");
        }
    }

    fn files(&mut self) -> io::Result<&mut Files> {
        match &mut self.files {
            Some(files) => Ok(files),
            none => Ok(none.insert(Files::open(Path::new(SWITCH), Path::new(LEDGER))?)),
        }
    }
}

/// The switch and the ledger. They stay open: to open one of them takes as long as to throw the switch.
#[derive(Debug)]
struct Files {
    switch: File,
    ledger: File,
    /// Where others find the ledger.
    path: PathBuf,
}

impl Files {
    fn open(switch: &Path, ledger: &Path) -> io::Result<Self> {
        let switch = OpenOptions::new().read(true).write(true).open(switch)?;
        Ok(Self { switch, ledger: open_ledger(ledger)?, path: ledger.to_owned() })
    }

    /// Takes a share, and throws the switch if nobody has; false where an operator has, and nothing is to be put back.
    fn throw(&mut self) -> io::Result<bool> {
        let thrown = self.share().and_then(|()| self.throw_shared());
        if !matches!(thrown, Ok(true)) {
            self.ledger.unlock()?;
        }
        thrown
    }

    fn throw_shared(&self) -> io::Result<bool> {
        let mut said = [0; 1];
        self.switch.read_exact_at(&mut said, 0)?;
        if said == [b'0'] {
            self.ledger.write_all_at(THROWN, 0)?;
            let thrown = self.switch.write_all_at(b"1", 0);
            return thrown.map(|()| true).inspect_err(|_| drop(self.ledger.set_len(0)));
        }
        self.is_ours()
    }

    /// Whether an agent has thrown the switch.
    fn is_ours(&self) -> io::Result<bool> {
        Ok(self.ledger.metadata()?.len() > 0)
    }

    /// Takes a share in the ledger, which an agent that ended may have removed while this one waited for it.
    fn share(&mut self) -> io::Result<()> {
        loop {
            self.ledger.lock_shared()?;
            if self.is_in_place()? {
                return Ok(());
            }
            self.ledger = open_ledger(&self.path)?;
        }
    }

    /// Gives the share back, and puts the switch back if it was the last.
    fn put_back(&self) -> io::Result<()> {
        let is_last = self.ledger.try_lock().is_ok();
        let put = match is_last {
            true => self.switch.write_all_at(b"0", 0).and_then(|()| self.ledger.set_len(0)),
            false => Ok(()),
        };
        self.ledger.unlock().and(put)
    }

    /// Removes the ledger, unless another agent has a share in it.
    fn remove(&self) -> io::Result<()> {
        let removed = match self.ledger.try_lock() {
            Ok(()) if self.is_in_place()? && !self.is_ours()? => fs::remove_file(&self.path),
            _ => Ok(()),
        };
        self.ledger.unlock().and(removed)
    }

    /// Whether this is still the ledger that others would open.
    fn is_in_place(&self) -> io::Result<bool> {
        let identity = |file: fs::Metadata| (file.dev(), file.ino());
        match fs::metadata(&self.path) {
            Ok(there) => Ok(identity(there) == identity(self.ledger.metadata()?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// For nobody else: whoever could lock it could keep every agent waiting.
fn open_ledger(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)
}

impl GracePeriods {
    /// Puts the switch back if an agent was killed while it was thrown, and no other needs it.
    pub fn recover() -> Self {
        let mut state = State::default();
        if fs::exists(LEDGER).unwrap_or(false)
            && let Err(error) = state.recover()
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
        if let Some(files) = &state.files {
            let _others_remove_it = files.remove();
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine with a switch of its own.
    struct Machine(tempfile::TempDir);

    impl Machine {
        fn with(switch: &str) -> Self {
            let machine = Self(tempfile::tempdir().unwrap());
            fs::write(machine.switch(), switch).unwrap();
            machine
        }

        fn switch(&self) -> PathBuf {
            self.0.path().join("switch")
        }

        fn ledger(&self) -> PathBuf {
            self.0.path().join("ledger")
        }

        fn agent(&self) -> Files {
            Files::open(&self.switch(), &self.ledger()).unwrap()
        }

        fn assert(&self, switch: &str, ledger: &str) {
            let files = [self.switch(), self.ledger()].map(|path| fs::read_to_string(path).unwrap());
            assert_eq!(files, [switch, ledger]);
        }
    }

    #[test]
    fn the_last_who_needs_the_switch_puts_it_back() {
        let machine = Machine::with("0");
        let (mut one, mut other) = (machine.agent(), machine.agent());
        assert!(one.throw().unwrap() && other.throw().unwrap());
        one.put_back().unwrap();
        machine.assert("1", "thrown\n");
        other.put_back().unwrap();
        machine.assert("0", "");
    }

    #[test]
    fn a_killed_agents_switch_is_put_back_by_the_next() {
        let machine = Machine::with("0");
        assert!(machine.agent().throw().unwrap());
        machine.assert("1", "thrown\n");
        let mut next = State { files: Some(machine.agent()), ..State::default() };
        next.recover().unwrap();
        machine.assert("0", "");
    }

    #[test]
    fn a_killed_agents_switch_stays_while_another_needs_it() {
        let machine = Machine::with("0");
        let mut living = machine.agent();
        assert!(machine.agent().throw().unwrap() && living.throw().unwrap());
        State { files: Some(machine.agent()), ..State::default() }.recover().unwrap();
        machine.assert("1", "thrown\n");
        living.put_back().unwrap();
        machine.assert("0", "");
    }

    #[test]
    fn an_operators_switch_is_left_alone() {
        let machine = Machine::with("1");
        let mut agent = machine.agent();
        assert!(!agent.throw().unwrap());
        machine.assert("1", "");
        State { files: Some(machine.agent()), ..State::default() }.recover().unwrap();
        machine.assert("1", "");
    }

    #[test]
    fn a_ledger_that_is_gone_is_begun_anew_and_one_in_use_is_not_removed() {
        let machine = Machine::with("0");
        let (ends, mut stays) = (machine.agent(), machine.agent());
        ends.remove().unwrap();
        assert!(!machine.ledger().exists());
        assert!(stays.throw().unwrap());
        machine.assert("1", "thrown\n");
        machine.agent().remove().unwrap();
        machine.assert("1", "thrown\n");
        let mut third = machine.agent();
        assert!(third.throw().unwrap(), "it is found there that an agent has thrown it");
        stays.put_back().unwrap();
        machine.assert("1", "thrown\n");
    }
}

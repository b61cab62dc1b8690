//! The kernel's switch for short grace periods, which all agents of the machine share.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// Where the kernel has it.
pub(super) const SWITCH: &str = "/sys/kernel/rcu_expedited";

/// The switch is the machine's, and so is this file: every agent that needs the switch thrown holds a shared lock on it,
/// and it says so in it who threw the switch if it was one of them. The kernel drops a dead agent's lock, so whoever
/// comes next puts the switch back. While nobody needs it the file is empty, and the last agent to end removes it.
pub(super) const LEDGER: &str = "/run/shunt-grace-periods";
const THROWN: &[u8] = b"thrown\n";

/// The switch and the ledger. They stay open: to open one of them takes as long as to throw the switch.
#[derive(Debug)]
pub(super) struct SharedSwitch {
    switch: File,
    ledger: File,
    /// Where others find the ledger.
    path: PathBuf,
}

impl SharedSwitch {
    /// Opens the kernel's switch, and the ledger, which it makes where there is none.
    pub(super) fn open() -> io::Result<Self> {
        Self::at(Path::new(SWITCH), Path::new(LEDGER))
    }

    fn at(switch: &Path, ledger: &Path) -> io::Result<Self> {
        let switch = OpenOptions::new().read(true).write(true).open(switch)?;
        Ok(Self { switch, ledger: open_ledger(ledger)?, path: ledger.to_owned() })
    }

    /// Whether there is a ledger: an agent has wanted the switch, and did not end in order.
    pub(super) fn has_ledger() -> bool {
        fs::exists(LEDGER).unwrap_or(false)
    }

    /// Takes a killed agent's share over, if it had one, and gives it back.
    pub(super) fn recover(&mut self) -> io::Result<()> {
        match self.share().and_then(|()| self.is_ours()) {
            Ok(true) => self.put_back(),
            Ok(false) => self.ledger.unlock(),
            Err(error) => self.ledger.unlock().and(Err(error)),
        }
    }

    /// Takes a share, and throws the switch if nobody has; false where an operator has, and nothing is to be put back.
    pub(super) fn throw(&mut self) -> io::Result<bool> {
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
    pub(super) fn put_back(&self) -> io::Result<()> {
        let is_last = self.ledger.try_lock().is_ok();
        let put = match is_last {
            true => self.switch.write_all_at(b"0", 0).and_then(|()| self.ledger.set_len(0)),
            false => Ok(()),
        };
        self.ledger.unlock().and(put)
    }

    /// Removes the ledger, unless another agent has a share in it.
    pub(super) fn remove(&self) -> io::Result<()> {
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

        fn agent(&self) -> SharedSwitch {
            SharedSwitch::at(&self.switch(), &self.ledger()).unwrap()
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
        machine.agent().recover().unwrap();
        machine.assert("0", "");
    }

    #[test]
    fn a_killed_agents_switch_stays_while_another_needs_it() {
        let machine = Machine::with("0");
        let mut living = machine.agent();
        assert!(machine.agent().throw().unwrap() && living.throw().unwrap());
        machine.agent().recover().unwrap();
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
        machine.agent().recover().unwrap();
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

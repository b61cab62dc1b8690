//! A process in the background that does not outlive its value.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::{Namespace, patience};

/// How long a process that is dropped may take to end by itself.
const PARTING: Duration = Duration::from_secs(2);

/// A running process, its output in a file. Dropping it asks it to end, and kills it if it does not.
#[derive(Debug)]
pub struct Daemon {
    child: Child,
    log: PathBuf,
}

impl Daemon {
    /// Starts `command` in `namespace`; its output is appended to `log`. It gets a process group of its own, so that
    /// a terminal's Ctrl-C reaches only us and the order of the teardown is ours.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(namespace: &Namespace, mut command: Command, log: &Path) -> Result<Self> {
        let output = File::options().create(true).append(true).open(log).context("open a log file")?;
        let errors = output.try_clone().context("share a log file")?;
        command.stdin(Stdio::null()).stdout(output).stderr(errors).process_group(0);
        let child = namespace
            .enter(|| command.spawn())?
            .with_context(|| format!("start {}", command.get_program().display()))?;
        Ok(Self { child, log: log.to_path_buf() })
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// How it ended, if it has.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Sends `signal` and waits, at most `patience`, for the end.
    pub(crate) fn stop(&mut self, signal: Signal, patience: Duration) -> Result<ExitStatus> {
        if let Some(status) = self.ended() {
            return Ok(status);
        }
        kill(Pid::from_raw(self.child.id().cast_signed()), signal).context("signal a process")?;
        let begun = Instant::now();
        while begun.elapsed() < patience {
            if let Some(status) = self.ended() {
                return Ok(status);
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        bail!("process {} did not end within {patience:?} of {signal}:\n{}", self.child.id(), self.log_tail())
    }

    /// The last lines of its output, for error messages.
    #[must_use]
    pub fn log_tail(&self) -> String {
        tail(&self.log)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // What an agent has lent itself of the machine, as the switch for short grace periods, it puts back at its end; after a
        // kill that is left to the next agent, and there may be none.
        drop(self.stop(Signal::SIGTERM, patience(PARTING)));
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The last lines of a log.
pub(crate) fn tail(log: &Path) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(40)..].join("\n")
}

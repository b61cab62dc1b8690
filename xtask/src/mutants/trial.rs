//! One fault, shown to the tests.

use std::fmt;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use super::fault::{Fault, Judge};
use super::scratch::Scratch;
use crate::setup::Tools;
use crate::summary::Summary;
use crate::{build, process, workspace};

/// Plenty for tests that take seconds; a fault may make them run for ever.
const LIMIT: Duration = Duration::from_secs(120);

pub(super) enum Outcome {
    /// These tests failed.
    Caught(Vec<String>),
    /// The tests came to no end.
    Hung,
    /// No test noticed.
    Survived,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Caught(tests) => {
                write!(f, "caught by {}", tests.first().map_or("a test that died", String::as_str))?;
                if tests.len() > 1 {
                    write!(f, " and {} more", tests.len() - 1)?;
                }
                Ok(())
            }
            Self::Hung => write!(f, "caught: the tests came to no end"),
            Self::Survived => write!(f, "SURVIVED"),
        }
    }
}

/// Puts the fault in, lets its tests judge, and takes it out again.
pub(super) fn with(fault: &Fault, scratch: &Scratch, tools: &Tools) -> Result<Outcome> {
    let sound = scratch.read(fault.file)?;
    scratch.write(fault.file, fault.apply(&sound)?.as_bytes())?;
    let outcome = judge(scratch, tools, fault.judge).with_context(|| fault.name);
    scratch.write(fault.file, sound.as_bytes())?;
    outcome
}

/// Runs the tests on the copy as it is.
pub(super) fn judge(scratch: &Scratch, tools: &Tools, judge: Judge) -> Result<Outcome> {
    let tests: &[&str] = match judge {
        Judge::Host => &["--package", "shunt-dataplane"],
        Judge::Loaded => {
            build::programs(scratch.root(), tools, process::quietly)?;
            &["--package", "shunt-agent", "--test", "parity"]
        }
        Judge::Stepped => {
            build::programs(scratch.root(), tools, process::quietly)?;
            &["--package", "stepper"]
        }
    };
    // A fault that does not compile proves nothing.
    process::quietly(cargo_test(scratch, tests).args(["--quiet", "--no-run"]))?;
    let report = scratch.root().join("target/report");
    let mut command = cargo_test(scratch, tests);
    let Some(status) = within_limit(&mut command, &report)? else {
        return Ok(Outcome::Hung);
    };
    let mut summary = Summary::default();
    let text = fs::read(&report).with_context(|| format!("cannot read {}", report.display()))?;
    String::from_utf8_lossy(&text).lines().for_each(|line| summary.read(line));
    if !status.success() {
        return Ok(Outcome::Caught(summary.failed));
    }
    if summary.passed == 0 {
        bail!("`{}` ran no test", process::shown(&command));
    }
    Ok(Outcome::Survived)
}

fn cargo_test(scratch: &Scratch, tests: &[&str]) -> Command {
    let mut cargo = workspace::cargo();
    cargo
        .current_dir(scratch.root())
        .args(["test", "--no-fail-fast"])
        .args(tests)
        .env_remove("CARGO_TARGET_DIR")
        // A failing property would leave its counterexample beside the sources.
        .env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "true");
    cargo
}

/// Runs a command with its output in a file; none when it came to no end, and then all of its processes are ended.
fn within_limit(command: &mut Command, report: &Path) -> Result<Option<ExitStatus>> {
    let file = File::create(report).with_context(|| format!("cannot write {}", report.display()))?;
    let mut child = command
        .stdin(Stdio::null())
        .stdout(file)
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .with_context(|| format!("cannot start `{}`", process::shown(command)))?;
    let deadline = Instant::now() + LIMIT;
    loop {
        if let Some(status) = child.try_wait().context("cannot wait for the tests")? {
            return Ok(Some(status));
        }
        let interrupted = process::check_interrupted();
        if interrupted.is_err() || Instant::now() > deadline {
            let group = Pid::from_raw(i32::try_from(child.id()).context("a process id is positive")?);
            killpg(group, Signal::SIGKILL).context("cannot end the tests")?;
            child.wait().context("cannot wait for the tests")?;
            return interrupted.map(|()| None);
        }
        sleep(Duration::from_millis(20));
    }
}

//! `cargo xtask vm`: the tests that depend on the kernel, on other kernels than this machine's.
//!
//! Each kernel is Debian's, booted by QEMU. The guest sees the host's root, read-only with a layer of memory over it, and
//! runs the test binaries that cargo has built here. Nothing is measured there: an emulated processor says nothing about
//! a real one.

mod guest;
mod initramfs;
mod kernel;
mod machine;
mod modules;
mod outcome;
mod record;
mod suites;
mod watch;

use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};
use std::{env, fs};

use anyhow::{Context, Result, anyhow, bail};
use clap::{Args, ValueEnum};

use self::kernel::{Kernel, Series};
use self::machine::Machine;
use self::outcome::Outcome;
use crate::summary::Summary;
use crate::{build, process, setup, workspace};

#[derive(Args)]
pub(crate) struct Arguments {
    /// The kernel to boot
    #[arg(long, value_enum, default_value_t = Choice::All)]
    kernel: Choice,
    /// Run one test at least of each thing that depends on the kernel
    #[arg(long)]
    quick: bool,
    /// Where a kernel or the emulator is not to be had, or no machine comes up: say so loudly, and succeed
    #[arg(long)]
    if_possible: bool,
    /// End machines that still run after so many minutes, which is a failure
    #[arg(long, default_value_t = 30)]
    minutes: u64,
    /// Run only this suite; more than one may be named
    #[arg(long)]
    suite: Vec<String>,
    /// Run only the tests whose name contains this; further words go to the test harness as they are
    #[arg(last = true)]
    filter: Vec<String>,
}

impl Arguments {
    fn tolerates(&self) -> bool {
        self.if_possible && !process::interrupted()
    }
}

#[derive(Clone, Copy, ValueEnum)]
enum Choice {
    #[value(name = "6.1")]
    V6_1,
    #[value(name = "6.12")]
    V6_12,
    All,
}

impl Choice {
    fn series(self) -> &'static [Series] {
        match self {
            Self::V6_1 => &[Series::V6_1],
            Self::V6_12 => &[Series::V6_12],
            Self::All => &[Series::V6_1, Series::V6_12],
        }
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let busybox = match setup::for_vm() {
        Err(error) if arguments.tolerates() => {
            not_tested(&[error]);
            return Ok(());
        }
        busybox => busybox?,
    };
    let (mut kernels, mut missing) = (Vec::new(), Vec::new());
    for series in arguments.kernel.series() {
        match kernel::find_or_download(*series) {
            Ok(kernel) => kernels.push((*series, kernel)),
            Err(error) if arguments.tolerates() => missing.push(error),
            Err(error) => return Err(error),
        }
    }
    let tested = if kernels.is_empty() { Ok(()) } else { test(arguments, &busybox, &kernels) };
    not_tested(&missing);
    tested
}

/// What nobody should overlook at the end of a log.
fn not_tested(reasons: &[anyhow::Error]) {
    reasons.iter().for_each(|reason| println!("NOT TESTED: {reason:#}"));
}

/// Boots all of them at the same time.
fn test(arguments: &Arguments, busybox: &Path, kernels: &[(Series, Kernel)]) -> Result<()> {
    let programs = programs()?;
    let choice =
        suites::Choice { quick: arguments.quick, suites: &arguments.suite, filter: &arguments.filter };
    let suites = suites::build(&choice)?;
    let begun = Instant::now();
    let deadline = begun + Duration::from_secs(60 * arguments.minutes);
    let boot = |series: Series, kernel: &Kernel| -> Result<Outcome> {
        let archive = guest::initramfs((series, kernel), busybox, &programs, &suites)?;
        boot(series, kernel, &archive, deadline)
    };
    let outcomes: Vec<_> = thread::scope(|scope| {
        let boot = &boot;
        let running: Vec<_> = kernels
            .iter()
            .map(|(series, kernel)| (*series, scope.spawn(move || boot(*series, kernel))))
            .collect();
        let panicked = |_| Err(anyhow!("the machine's thread panicked"));
        running.into_iter().map(|(series, thread)| (series, thread.join().unwrap_or_else(panicked))).collect()
    });
    process::check_interrupted()?;
    let (never_up, outcomes): (Vec<_>, Vec<_>) = outcomes.into_iter().partition(|(_, outcome)| {
        arguments.tolerates() && outcome.as_ref().is_err_and(|error| error.is::<NeverUp>())
    });
    let reported = report(outcomes, begun);
    choice.left_out().iter().for_each(|line| println!("left out: {line}"));
    let errors = never_up
        .into_iter()
        .filter_map(|(series, outcome)| Some(outcome.err()?.context(format!("Linux {}", series.name()))));
    not_tested(&errors.collect::<Vec<_>>());
    reported
}

/// Sees to it that there are kernels to boot. Returns their releases.
pub(crate) fn fetch() -> Result<Vec<String>> {
    let series = Choice::All.series().iter();
    series.map(|series| Ok(kernel::find_or_download(*series)?.release())).collect()
}

/// Where the plugin and the agent are: where the tests are told to look for them, or in what is built here and now.
fn programs() -> Result<PathBuf> {
    match env::var_os("SHUNT_BIN_DIR") {
        Some(directory) => Ok(directory.into()),
        None => build::run().map(|()| workspace::target().join("release")),
    }
}

/// Runs one machine and shows its lines, each with the kernel it comes from and how long that one has run.
fn boot(series: Series, kernel: &Kernel, archive: &[u8], deadline: Instant) -> Result<Outcome> {
    let directory = workspace::target().join("vm").join(series.name());
    fs::create_dir_all(&directory).with_context(|| format!("cannot create {}", directory.display()))?;
    let (initramfs, report) = (directory.join("initramfs"), directory.join("report"));
    fs::write(&initramfs, archive).with_context(|| format!("cannot write {}", initramfs.display()))?;
    let machine = Machine { image: &kernel.image, initramfs: &initramfs, report: &report, deadline };
    let attempt = || -> Result<Outcome> {
        let (mut summary, begun) = (Summary::default(), Instant::now());
        let report = machine.run(|line| {
            summary.read(line);
            let seconds = begun.elapsed().as_secs();
            // Who has closed our output does not want to read it.
            writeln!(std::io::stdout(), "{:<4} {seconds:>4} s | {line}", series.name()).ok();
        })?;
        Ok(Outcome::new(&report, summary))
    };
    // An emulator on a busy machine may fail to boot. A test is never tried again.
    for _ in 0..2 {
        let outcome = attempt();
        process::check_interrupted()?;
        let said = fs::read_to_string(&report).unwrap_or_default();
        if Outcome::new(&said, Summary::default()).has_begun() {
            return outcome;
        }
        let why = outcome.err().map(|error| format!(": {error:#}")).unwrap_or_default();
        eprintln!("vm: Linux {} has not come up{why}", series.name());
    }
    Err(NeverUp.into())
}

/// The machine has come to no test, twice. That says something of the machine that emulates it.
#[derive(Debug)]
struct NeverUp;

impl fmt::Display for NeverUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("it does not come up in the emulator")
    }
}

impl std::error::Error for NeverUp {}

/// What matters stands last, one line for each kernel.
fn report(outcomes: Vec<(Series, Result<Outcome>)>, begun: Instant) -> Result<()> {
    let mut faults = Vec::new();
    let mut summary = Vec::new();
    for (series, outcome) in outcomes {
        let name = series.name();
        match outcome {
            Ok(outcome) => {
                record::renew(series, &outcome.record)?;
                outcome.skips.iter().for_each(|skip| println!("{name:<4} | skipped: {skip}"));
                outcome.summary.failed.iter().for_each(|test| println!("{name:<4} | failed: {test}"));
                faults.extend(outcome.fault().map(|fault| format!("Linux {name}: {fault}")));
                summary.push(format!("{name:<4} | {outcome}"));
            }
            Err(error) => faults.push(format!("Linux {name}: {error:#}")),
        }
    }
    summary.iter().for_each(|line| println!("{line}"));
    println!("{} s", begun.elapsed().as_secs());
    if !faults.is_empty() {
        bail!("{}", faults.join("\n       "));
    }
    Ok(())
}

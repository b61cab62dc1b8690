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
mod suites;

use std::io::Write;
use std::path::PathBuf;
use std::thread;
use std::time::Instant;
use std::{env, fs};

use anyhow::{Context, Result, anyhow, bail};
use clap::{Args, ValueEnum};

use self::kernel::{Kernel, Series};
use self::machine::Machine;
use self::outcome::Outcome;
use crate::test::Tally;
use crate::{build, process, setup, workspace};

#[derive(Args)]
pub(crate) struct Arguments {
    /// The kernel to boot
    #[arg(long, value_enum, default_value_t = Choice::All)]
    kernel: Choice,
    /// Run one test at least of each thing that depends on the kernel
    #[arg(long)]
    quick: bool,
    /// Run only this suite; more than one may be named
    #[arg(long)]
    suite: Vec<String>,
    /// Run only the tests whose name contains this; further words go to the test harness as they are
    #[arg(last = true)]
    filter: Vec<String>,
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
    let busybox = setup::for_vm()?;
    let series = arguments.kernel.series();
    let kernels =
        series.iter().map(|series| kernel::find_or_download(*series)).collect::<Result<Vec<_>>>()?;
    let programs = programs()?;
    let choice =
        suites::Choice { quick: arguments.quick, suites: &arguments.suite, filter: &arguments.filter };
    let suites = suites::build(&choice)?;
    let boot = |series: Series, kernel: &Kernel| -> Result<Outcome> {
        let archive = guest::initramfs(kernel, &busybox, &programs, &suites)?;
        boot(series, kernel, &archive)
    };
    let begun = Instant::now();
    let outcomes: Vec<Result<Outcome>> = thread::scope(|scope| {
        let boot = &boot;
        let started = series.iter().zip(&kernels);
        let running: Vec<_> =
            started.map(|(series, kernel)| scope.spawn(move || boot(*series, kernel))).collect();
        let ended = running.into_iter().map(thread::ScopedJoinHandle::join);
        ended.map(|result| result.unwrap_or_else(|_| Err(anyhow!("the machine's thread panicked")))).collect()
    });
    process::check_interrupted()?;
    report(series, outcomes, begun)
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

/// Runs one machine and shows its lines, each with the kernel it comes from.
fn boot(series: Series, kernel: &Kernel, archive: &[u8]) -> Result<Outcome> {
    let directory = workspace::target().join("vm").join(series.name());
    fs::create_dir_all(&directory).with_context(|| format!("cannot create {}", directory.display()))?;
    let (initramfs, report) = (directory.join("initramfs"), directory.join("report"));
    fs::write(&initramfs, archive).with_context(|| format!("cannot write {}", initramfs.display()))?;
    let machine = Machine { image: &kernel.image, initramfs: &initramfs, report: &report };
    let attempt = || -> Result<Outcome> {
        let mut tally = Tally::default();
        let report = machine.run(|line| {
            tally.read(line);
            // Who has closed our output does not want to read it.
            writeln!(std::io::stdout(), "{:<4} | {line}", series.name()).ok();
        })?;
        Ok(Outcome::new(&report, tally))
    };
    let outcome = attempt()?;
    if outcome.has_begun() {
        return Ok(outcome);
    }
    // An emulator on a busy machine may fail to boot. A test is never tried again.
    eprintln!("vm: Linux {} has not come up: once more", series.name());
    attempt()
}

/// What matters stands last, one line for each kernel.
fn report(series: &[Series], outcomes: Vec<Result<Outcome>>, begun: Instant) -> Result<()> {
    let mut faults = Vec::new();
    let mut summary = Vec::new();
    for (series, outcome) in series.iter().zip(outcomes) {
        let name = series.name();
        match outcome {
            Ok(outcome) => {
                outcome.skips.iter().for_each(|skip| println!("{name:<4} | skipped: {skip}"));
                outcome.tally.failed.iter().for_each(|test| println!("{name:<4} | failed: {test}"));
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

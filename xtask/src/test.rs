//! `cargo xtask test`: builds, runs every test, and then looks for anything that the tests left behind. `--long` does so with the tests that are
//! `#[ignore]`d, as they take minutes.

mod leaks;
mod processes;
mod programs;
mod skips;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, bail};
use clap::Args;

use self::leaks::Snapshot;
use self::processes::Process;
use self::skips::Skips;
use crate::summary::Summary;
use crate::{build, fuzz, process, setup, workspace};

/// How many tests of a program run at a time (the Rust test harness).
const THREADS: &str = "RUST_TEST_THREADS";

/// Most of a test's time goes by waiting: for timeouts, for the kernel and for other processes.
const TESTS_A_PROCESSOR: usize = 2;

#[derive(Args)]
pub(crate) struct Arguments {
    /// Run only the tests whose name contains this
    filter: Option<String>,
    /// Run only this package's tests
    #[arg(short, long)]
    package: Option<String>,
    /// Run those that take minutes instead, one at a time: soaks, big matrices, thousands of links
    #[arg(long)]
    long: bool,
}

impl Arguments {
    /// Whether nothing is left out.
    fn are_all(&self) -> bool {
        self.filter.is_none() && self.package.is_none() && !self.long
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    if !nix::unistd::geteuid().is_root() {
        bail!(
            "the tests make network namespaces and load programs: they need root\n  \
             all of them:   sudo -E env \"PATH=$PATH\" cargo xtask test\n  \
             the pure ones: cargo test --package shunt-dataplane"
        );
    }
    setup::for_tests()?;
    build::run()?;
    // The tests run whatever the fuzzers find.
    let fuzzed = if arguments.are_all() { fuzz::run(&fuzz::Arguments::for_the_suite()) } else { Ok(()) };
    processes::adopt_orphans()?;

    let skips = Skips::create()?;
    let before = Snapshot::take();
    let temporary = temporary_directory()?;
    let mut cargo = tests(arguments);
    let Watched { summary, status, holding_on } =
        watch(cargo.envs(skips.environment()).env("TMPDIR", &temporary))?;
    // Only an empty directory can be removed; another one is found as left behind.
    fs::remove_dir(&temporary).ok();
    let mut left = before.leaks();
    left.extend(holding_on.iter().map(Process::to_string));
    report(&summary, &skips.read()?, &left);

    process::check_interrupted()?;
    if summary.passed + summary.failed.len() == 0 && status.success() {
        bail!("no test was run: is the filter right?");
    }
    process::expect_success(&cargo, status)?;
    if !left.is_empty() {
        bail!("the tests left something behind");
    }
    fuzzed?;
    skips.judge()
}

fn tests(arguments: &Arguments) -> Command {
    let mut cargo = workspace::cargo();
    cargo.args(["test", "--no-fail-fast"]);
    match &arguments.package {
        Some(package) => cargo.args(["--package", package]),
        None => cargo.arg("--workspace"),
    };
    cargo.arg("--").args(&arguments.filter);
    if arguments.long {
        cargo.args(["--ignored", "--test-threads", "1", "--nocapture"]);
    }
    cargo.env("SHUNT_BIN_DIR", workspace::target().join("release"));
    if std::env::var_os(THREADS).is_none() {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        cargo.env(THREADS, (processors * TESTS_A_PROCESSOR).to_string());
    }
    let tools = [
        ("SHUNT_HELM", setup::for_chart()),
        ("SHUNT_PROMTOOL", setup::for_alerts()),
        ("SHUNT_NETAVARK", setup::for_netavark()),
        ("SHUNT_PYTHON_GRPC", setup::for_clients()),
        ("SHUNT_DEBIAN_ROOT", setup::for_packages()),
    ];
    for (name, tool) in tools {
        match tool {
            Ok(path) => drop(cargo.env(name, path)),
            // The tests that want it say that they do not run.
            Err(error) => eprintln!("setup: {error:#}"),
        }
    }
    cargo
}

/// The tests' own, so that what they leave in it is told from everybody else's. Short: sockets are made there.
fn temporary_directory() -> Result<PathBuf> {
    let path = std::env::temp_dir().join(format!("shunt-test-{}", std::process::id()));
    fs::create_dir(&path).with_context(|| format!("cannot create {}", path.display()))?;
    Ok(path)
}

/// What there is to know when the tests have ended.
struct Watched {
    summary: Summary,
    status: ExitStatus,
    /// Processes that held the output open after the tests had ended.
    holding_on: Vec<Process>,
}

/// Shows the tests' output as it comes, and counts along.
fn watch(cargo: &mut Command) -> Result<Watched> {
    process::check_interrupted()?;
    let mut child = cargo
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start `{}`", process::shown(cargo)))?;
    let output_ended = Arc::new(AtomicBool::new(false));
    let guard = processes::guard(child.id(), Arc::clone(&output_ended));
    let mut summary = Summary::default();
    let output = child.stdout.take().context("the output is a pipe")?;
    for line in BufReader::new(output).split(b'\n') {
        let line = line.context("cannot read the tests' output")?;
        let line = String::from_utf8_lossy(&line);
        summary.read(&line);
        let mut shown = std::io::stdout().lock();
        writeln!(shown, "{line}").and_then(|()| shown.flush()).context("cannot write")?;
    }
    output_ended.store(true, Ordering::Relaxed);
    // Before the wait, after which the child's id may be another process's.
    let holding_on = guard.join().unwrap_or_default();
    let status = child.wait().context("cannot wait for the tests")?;
    Ok(Watched { summary, status, holding_on })
}

/// What matters stands last, the totals on the very last line.
fn report(summary: &Summary, skips: &[String], left: &[String]) {
    for skip in skips {
        println!("skipped: {skip}");
    }
    for name in &summary.failed {
        println!("failed: {name}");
    }
    for leak in left {
        println!("left behind: {leak}");
    }
    let tidy = if left.is_empty() {
        "nothing left behind".to_owned()
    } else {
        format!("{} left behind", left.len())
    };
    println!("{summary}, {} skipped, {tidy}", skips.len());
}

//! `cargo xtask fuzz`: coverage-guided fuzzing of everything that is read from untrusted sources.
//!
//! libFuzzer needs programs that count which branches they take. The compiler pass that adds the counters is in the
//! stable compiler; what is not there is the address sanitizer, which code without `unsafe` can do without.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::{build, process, setup, workspace};

/// The programs in `fuzz/targets`.
const TARGETS: [&str; 5] = ["config", "arguments", "request", "record", "message"];

/// What makes the compiler count branches, and memory comparisons so that the fuzzer learns words from them.
const COVERAGE: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares --cfg fuzzing";

/// No input takes longer than 5 s or more memory than 512 MiB. Four KiB are more than any of the real ones.
const LIMITS: [&str; 5] =
    ["-timeout=5", "-rss_limit_mb=512", "-max_len=4096", "-print_final_stats=1", "-verbosity=0"];

/// How the corpus grows: the least that takes every branch, however often it takes it.
const FEW: [&str; 3] = ["-set_cover_merge=1", "-use_counters=0", "-use_cmp=0"];

#[derive(Args)]
pub(crate) struct Arguments {
    /// Only this target: config, arguments, request, record or message
    target: Option<String>,
    /// How long to look, for each target
    #[arg(long, default_value_t = 60)]
    seconds: u32,
    /// Add what takes new branches to fuzz/corpus
    #[arg(long)]
    keep: bool,
    /// The random numbers' seed; another one each time when it is left out
    #[arg(long)]
    seed: Option<u32>,
}

impl Arguments {
    /// What the suite runs: the same inputs in the same order every time.
    pub(crate) fn for_the_suite() -> Self {
        Self { target: None, seconds: 5, keep: false, seed: Some(1) }
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    setup::for_tests()?;
    build::run()?;
    let targets: Vec<&str> = match &arguments.target {
        None => TARGETS.to_vec(),
        Some(name) => TARGETS.iter().copied().filter(|target| target == name).collect(),
    };
    if targets.is_empty() {
        bail!("there is no such target; there are {}", TARGETS.join(", "));
    }
    let programs = compile()?;
    targets.into_iter().try_for_each(|target| look(&programs, target, arguments))
}

/// Builds the targets, and says where they are.
fn compile() -> Result<PathBuf> {
    // With `--target` the flags are not for build scripts and macros, which nobody fuzzes.
    let machine = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let directory = workspace::target().join("fuzz");
    let mut cargo = workspace::cargo();
    cargo.args(["build", "--package", "shunt-fuzz", "--bins", "--profile", "fuzz", "--target", &machine]);
    cargo.arg("--target-dir").arg(&directory).env("RUSTFLAGS", COVERAGE);
    process::run(&mut cargo)?;
    Ok(directory.join(machine).join("fuzz"))
}

/// Fuzzes one target. An input that breaks it is kept and named.
fn look(programs: &Path, target: &str, arguments: &Arguments) -> Result<()> {
    let saved = workspace::root().join("fuzz/corpus").join(target);
    let found = workspace::target().join("fuzz/found").join(target);
    let broken = workspace::target().join("fuzz/broken").join(target);
    // What an earlier run found is no part of this one.
    fs::remove_dir_all(&found).ok();
    for directory in [&found, &broken] {
        fs::create_dir_all(directory).with_context(|| format!("cannot make {}", directory.display()))?;
    }
    let mut fuzzer = Command::new(programs.join(target));
    fuzzer.args(LIMITS).arg(format!("-max_total_time={}", arguments.seconds));
    fuzzer.arg(format!("-artifact_prefix={}/", broken.display()));
    fuzzer.args(arguments.seed.map(|seed| format!("-seed={seed}")));
    // New inputs go to the first directory.
    fuzzer.args([&found, &saved]);
    let said = said_by(&mut fuzzer)?;
    println!(
        "{target}: {} inputs, {} of them took new branches",
        stat(&said, "number_of_executed_units"),
        stat(&said, "new_units_added")
    );
    if arguments.keep {
        let mut merge = Command::new(programs.join(target));
        merge.args(LIMITS).args(FEW).args([&saved, &found]);
        said_by(&mut merge)?;
    }
    Ok(())
}

/// Runs a fuzzer. What it says goes to standard error, and is shown only when it fails, with its last lines: the input
/// that broke the target, and where that is kept.
fn said_by(fuzzer: &mut Command) -> Result<String> {
    process::check_interrupted()?;
    let output = fuzzer.output().with_context(|| format!("cannot start `{}`", process::shown(fuzzer)))?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if !output.status.success() {
        let lines: Vec<&str> = said.lines().collect();
        eprintln!("{}", lines[lines.len().saturating_sub(40)..].join("\n"));
    }
    process::expect_success(fuzzer, output.status)?;
    Ok(said)
}

/// A figure of libFuzzer's final statistics, as it stands there.
fn stat<'a>(said: &'a str, name: &str) -> &'a str {
    let line =
        said.lines().find_map(|line| line.strip_prefix("stat::")?.strip_prefix(name)?.strip_prefix(':'));
    line.map_or("?", str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_are_found_by_name() {
        let said = "INFO: x\nstat::number_of_executed_units: 286166\nstat::new_units_added:          12\n";
        assert_eq!(stat(said, "number_of_executed_units"), "286166");
        assert_eq!(stat(said, "new_units_added"), "12");
        assert_eq!(stat(said, "peak_rss_mb"), "?");
    }
}

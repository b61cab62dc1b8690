//! `cargo xtask lint`: formatting, clippy, licences and the house rules. All are run, also after one has failed.

mod tidy;

use std::process::Command;

use anyhow::{Result, bail};

use crate::{build, process, setup, workspace};

pub(crate) fn run() -> Result<()> {
    // The agent's build script embeds the kernel programs, and clippy runs build scripts.
    build::programs(workspace::root(), &setup::for_build()?, process::run)?;
    let deny = setup::for_lint()?;
    let checks: [(&str, Result<()>); 5] = [
        ("tidy", tidy::run()),
        ("fmt", process::run(workspace::cargo().args(["fmt", "--all", "--check"]))),
        ("clippy", process::run(workspace::cargo().args(CLIPPY))),
        ("clippy without kubernetes", process::run(workspace::cargo().args(CLIPPY_PLAIN_AGENT))),
        // No advisories: their database is a git clone of its own, and CI may reach only package registries.
        (
            "deny",
            process::run(in_root(deny).args(["--log-level", "warn", "check", "licenses", "bans", "sources"])),
        ),
    ];
    let mut failed = Vec::new();
    for (name, result) in checks {
        if let Err(error) = result {
            eprintln!("{name}: {error:#}");
            failed.push(name);
        }
    }
    if !failed.is_empty() {
        bail!("lint failed: {}", failed.join(", "));
    }
    println!("lint: tidy, fmt, clippy and deny are content");
    Ok(())
}

const CLIPPY: [&str; 6] = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];

/// The agent as the fuzzers build it, and whoever wants one that knows no API server.
const CLIPPY_PLAIN_AGENT: [&str; 7] =
    ["clippy", "--package", "shunt-agent", "--no-default-features", "--", "-D", "warnings"];

fn in_root(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    command.current_dir(workspace::root());
    command
}

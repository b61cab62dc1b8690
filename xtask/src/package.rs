//! `cargo xtask package`: builds what is shipped, has `shunt-pages` write the pages, and `shunt-deploy` pack all of it.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use crate::setup::Processor;
use crate::{build, process, workspace};

#[derive(Args)]
pub(crate) struct Arguments {
    /// Where the packages go [default: target/package]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// The processor that they are for [default: this machine's]
    #[arg(long, value_name = "PROCESSOR")]
    arch: Option<Processor>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let programs = build::shipped(arguments.arch)?;
    let pages = workspace::target().join("pages");
    let mut cargo = workspace::cargo();
    process::run(cargo.args(["run", "--quiet", "--package", "shunt-pages", "--"]).arg(&pages))?;
    let out = arguments.out.clone().unwrap_or_else(|| workspace::target().join("package"));
    let mut cargo = workspace::cargo();
    cargo.args(["run", "--quiet", "--package", "shunt-deploy", "--", "package", "--programs"]).arg(programs);
    process::run(cargo.arg("--pages").arg(pages).arg("--out").arg(std::path::absolute(out)?))
}

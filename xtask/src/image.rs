//! `cargo xtask image`: builds what is shipped, and has `shunt-deploy` make an OCI archive of it.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use crate::setup::Processor;
use crate::{build, process, workspace};

#[derive(Args)]
pub(crate) struct Arguments {
    /// Where the image and its bill of materials go [default: target/image]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// The processor that the image is for [default: this machine's]
    #[arg(long, value_name = "PROCESSOR")]
    arch: Option<Processor>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let programs = build::shipped(arguments.arch)?;
    let out = arguments.out.clone().unwrap_or_else(|| workspace::target().join("image"));
    let mut cargo = workspace::cargo();
    cargo.args(["run", "--quiet", "--package", "shunt-deploy", "--", "image", "--programs"]).arg(programs);
    process::run(cargo.arg("--out").arg(std::path::absolute(out)?))
}

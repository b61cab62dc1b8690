//! `cargo xtask hot-text`: has the plugin's functions put into the order in which an ADD and a DEL run them.

use std::process::Command;

use anyhow::Result;

use crate::{build, process, setup, workspace};

/// By it the linker orders them (`cni-plugin/build.rs`).
const SCRIPT: &str = "cni-plugin/hot-text.ld";

/// Records them with the plugin as it is, and builds it anew.
pub(crate) fn run() -> Result<()> {
    setup::for_traffic()?;
    build::run()?;
    process::check_interrupted()?;
    let mut command = Command::new(workspace::release_binary("shunt-bench"));
    command.arg("hot-text").arg("--out").arg(workspace::root().join(SCRIPT));
    process::run(&mut command)?;
    build::run()
}

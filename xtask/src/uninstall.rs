//! `cargo xtask uninstall`: has the installed agent take everything of shunt's off the node.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;
use clap::Args;

use crate::{build, process, workspace};

#[derive(Args)]
pub(crate) struct Arguments {
    /// Where the runtime looks for CNI plugins
    #[arg(long, value_name = "DIR", default_value = "/opt/cni/bin")]
    bin_dir: PathBuf,
    /// Where the agent is
    #[arg(long, value_name = "DIR", default_value = "/usr/local/sbin")]
    sbin_dir: PathBuf,
    /// More arguments for `shunt-agent uninstall`, as --force
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    more: Vec<String>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let installed = arguments.sbin_dir.join("shunt-agent");
    let agent = if installed.is_file() {
        installed
    } else {
        build::run()?;
        workspace::release_binary("shunt-agent")
    };
    let mut command = Command::new(agent);
    command
        .arg("uninstall")
        .arg("--bin-dir")
        .arg(&arguments.bin_dir)
        .arg("--sbin-dir")
        .arg(&arguments.sbin_dir);
    process::run(command.args(&arguments.more))
}

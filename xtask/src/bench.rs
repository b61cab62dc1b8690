//! `cargo xtask demo` and `cargo xtask bench`: build, then become `shunt-bench`.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

use anyhow::{Context, Result};
use clap::Args;

use crate::{build, process, setup, workspace};

#[derive(Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Arguments {
    /// Handed to `shunt-bench` as they are
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    rest: Vec<OsString>,
}

pub(crate) fn run(verb: &str, arguments: &Arguments) -> Result<()> {
    setup::for_traffic()?;
    build::run()?;
    process::check_interrupted()?;
    let mut command = Command::new(workspace::release_binary("shunt-bench"));
    command.arg(verb).args(&arguments.rest);
    // In our place, not below us: signals, terminal and exit status are then its own.
    let error = command.exec();
    Err(error).with_context(|| format!("cannot start `{}`", process::shown(&command)))
}

//! `cargo xtask ci`: what CI runs, on a developer's machine.

use std::process::Command;

use anyhow::Result;

use crate::{process, workspace};

/// Runs CI's own script, so that the two cannot differ.
pub(crate) fn run() -> Result<()> {
    process::run(Command::new(workspace::root().join(".ci/run")).current_dir(workspace::root()))
}

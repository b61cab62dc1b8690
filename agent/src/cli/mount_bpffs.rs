//! `shunt-agent mount-bpffs`: what a privileged init container prepares a node with, so that the agent itself mounts nothing.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use serde_json::json;
use shunt_agent::config::DEFAULT_BPFFS;
use shunt_agent::datapath::mount;

use super::exit::UNREACHABLE;
use super::printing::{code_of, complain, print_json};

/// Mounts a BPF file system on the parent of the directory, unless one is mounted there.
#[derive(Args, Debug)]
pub(crate) struct MountBpffs {
    /// Where the agent pins maps and links.
    #[arg(long, value_name = "DIR", default_value = DEFAULT_BPFFS)]
    bpffs: PathBuf,
    /// Say in JSON where it is, and whether it was mounted now.
    #[arg(long)]
    json: bool,
}

impl MountBpffs {
    pub(crate) fn run(self) -> ExitCode {
        match mount::ensure(&self.bpffs) {
            Ok(mounted) if self.json => {
                let at = self.bpffs.parent().map(Path::display).map(|at| at.to_string());
                code_of(print_json(&json!({ "path": at, "mounted": mounted })))
            }
            Ok(_) => ExitCode::SUCCESS,
            Err(error) => {
                complain(error);
                UNREACHABLE.into()
            }
        }
    }
}

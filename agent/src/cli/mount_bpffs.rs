//! `shunt-agent mount-bpffs`: what a privileged init container prepares a node with, so that the agent itself mounts nothing.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use serde_json::json;
use shunt_agent::config::DEFAULT_BPFFS;
use shunt_agent::datapath::mount::{self, MountError, Parent};

use super::exit::UNREACHABLE;
use super::printing::{code_of, print_json};

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
        match self.mount() {
            Ok(mounted) if self.json => {
                let at = self.bpffs.parent().map(Path::display).map(|at| at.to_string());
                code_of(print_json(&json!({ "path": at, "mounted": mounted })))
            }
            Ok(_) => ExitCode::SUCCESS,
            Err(error) => {
                // Nobody is told who has closed standard error.
                let _closed = writeln!(io::stderr(), "shunt-agent: {error}");
                UNREACHABLE.into()
            }
        }
    }

    /// Whether there was none before.
    fn mount(&self) -> Result<bool, MountError> {
        let is_new = matches!(mount::look(&self.bpffs)?, Parent::Free(_));
        mount::ensure(&self.bpffs).map(|()| is_new)
    }
}

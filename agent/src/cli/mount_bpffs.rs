//! `shunt-agent mount-bpffs`: what a privileged init container prepares a node with, so that the agent itself mounts nothing.

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use shunt_agent::config::DEFAULT_BPFFS;
use shunt_agent::datapath::mount;

use super::exit::UNREACHABLE;

/// Mounts a BPF file system on the parent of the directory, unless one is mounted there.
#[derive(Args, Debug)]
pub(crate) struct MountBpffs {
    /// Where the agent pins maps and links.
    #[arg(long, value_name = "DIR", default_value = DEFAULT_BPFFS)]
    bpffs: PathBuf,
}

impl MountBpffs {
    pub(crate) fn run(self) -> ExitCode {
        match mount::ensure(&self.bpffs) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                // Nobody is told who has closed standard error.
                let _closed = writeln!(io::stderr(), "shunt-agent: {error}");
                UNREACHABLE.into()
            }
        }
    }
}

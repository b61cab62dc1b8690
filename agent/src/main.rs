//! `shunt-agent`: the daemon and the verbs that ask it.

use std::process::ExitCode;

use clap::Parser as _;
use shunt_agent::cli::{self, Cli};

/// The allocator of a C library that is linked in (musl) gives memory back to the kernel at every free.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

fn main() -> ExitCode {
    match Cli::try_parse() {
        Ok(cli) => cli.run(),
        Err(error) => {
            // Nothing is left to be said if standard output is closed.
            let _closed = error.print();
            if error.use_stderr() { cli::exit::USAGE.into() } else { ExitCode::SUCCESS }
        }
    }
}

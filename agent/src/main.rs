//! `shunt-agent`: the daemon and the verbs that ask it.

mod cli;

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    match cli::Cli::try_parse() {
        Ok(cli) => cli.run(),
        Err(error) => {
            // Nothing is left to be said if standard output is closed.
            let _closed = error.print();
            if error.use_stderr() { cli::USAGE.into() } else { ExitCode::SUCCESS }
        }
    }
}

//! `shunt-pages DIR`, which `cargo xtask package` runs.
#![forbid(unsafe_code)]
#![allow(clippy::print_stderr, reason = "printing is a command line's job")]

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let Some(directory) = std::env::args_os().nth(1) else {
        eprintln!("usage: shunt-pages DIR");
        return ExitCode::FAILURE;
    };
    match shunt_pages::write(Path::new(&directory)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cannot write into {}: {error}", Path::new(&directory).display());
            ExitCode::FAILURE
        }
    }
}

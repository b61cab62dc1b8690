//! Telling that a test could not run. The test harness has no word for it and hides what a passing test prints.

use std::fs::OpenOptions;
use std::io::Write;

/// What a test lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lacking<'a> {
    /// A program, by its Debian package. In CI that is a failure: `cargo xtask setup` installs it.
    Package(&'a str),
    /// Something that this kernel was built without.
    Kernel(&'a str),
    /// Something that is built, or installed, where a person asks for it only.
    Build(&'a str),
}

/// Says that the calling test does not run, and why. `cargo xtask test` names the file in `SHUNT_SKIPS` and shows
/// its lines at the end; without it the line goes to standard error.
pub fn skip(lacking: Lacking<'_>) {
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    let line = match lacking {
        Lacking::Package(name) => format!("package: {name} is not installed: {test}\n"),
        Lacking::Build(name) => format!("build: {name} is missing: {test}\n"),
        Lacking::Kernel(feature) => format!("kernel: {feature} is missing: {test}\n"),
    };
    let file =
        std::env::var_os("SHUNT_SKIPS").and_then(|path| OpenOptions::new().append(true).open(path).ok());
    // One write, so that tests that skip at the same time do not mix their lines. There is nobody to tell of a failure.
    match file {
        Some(mut file) => drop(file.write_all(line.as_bytes())),
        None => drop(std::io::stderr().write_all(line.as_bytes())),
    }
}

//! Commands of the system's own (`ip`, `iptables`, `nft`), run in the calling thread's namespace.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// Runs a command and gives what it printed.
///
/// # Errors
/// When it cannot be started (the error says which program is missing) or exits with a failure.
pub fn run(program: &str, arguments: &[&str]) -> Result<String> {
    let output = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot run `{program}` (`cargo xtask setup` installs it)"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("`{program} {}` failed ({}): {}", arguments.join(" "), output.status, said.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

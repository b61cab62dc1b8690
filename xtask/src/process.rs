//! Running other programs: a failure always shows the command and its exit status.

use std::ffi::OsStr;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use anyhow::{Context, Result, bail};
use signal_hook::consts::SIGINT;

static INTERRUPTED: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// Lets a Ctrl-C end the children only.
///
/// The terminal sends SIGINT to the whole process group. The children stop; this process stays long enough to look
/// after what they left. (An ignored signal would be inherited by them; a handler is not.)
pub(crate) fn outlive_ctrl_c() -> Result<()> {
    let flag = INTERRUPTED.get_or_init(Arc::default);
    signal_hook::flag::register(SIGINT, Arc::clone(flag)).context("cannot handle Ctrl-C")?;
    Ok(())
}

/// Whether Ctrl-C was pressed.
pub(crate) fn interrupted() -> bool {
    INTERRUPTED.get().is_some_and(|flag| flag.load(Ordering::Relaxed))
}

/// Fails once Ctrl-C was pressed, so that no further step starts.
pub(crate) fn check_interrupted() -> Result<()> {
    if interrupted() {
        bail!("interrupted");
    }
    Ok(())
}

/// A way to run a command: [`run`] or [`quietly`].
pub(crate) type Run = fn(&mut Command) -> Result<()>;

/// Runs a command with our own input and output, and fails when it fails.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    check_interrupted()?;
    let status = command.status().with_context(|| format!("cannot start `{}`", shown(command)))?;
    check_interrupted()?;
    expect_success(command, status)
}

/// Runs a command and shows its output only when it fails.
pub(crate) fn quietly(command: &mut Command) -> Result<()> {
    output(command).map(drop)
}

/// Runs a command and returns what it wrote to its standard output.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    check_interrupted()?;
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .output()
        .with_context(|| format!("cannot start `{}`", shown(command)))?;
    expect_success(command, output.status)
        .with_context(|| String::from_utf8_lossy(&output.stderr).trim().to_owned())?;
    String::from_utf8(output.stdout).with_context(|| format!("`{}` printed bytes, not text", shown(command)))
}

/// Turns an unsuccessful exit status into an error that names the command.
pub(crate) fn expect_success(command: &Command, status: ExitStatus) -> Result<()> {
    if !status.success() {
        bail!("`{}` failed: {status}", shown(command));
    }
    Ok(())
}

/// The command as one would type it.
pub(crate) fn shown(command: &Command) -> String {
    std::iter::once(command.get_program()).chain(command.get_args()).map(quoted).collect::<Vec<_>>().join(" ")
}

fn quoted(word: &OsStr) -> String {
    let word = word.to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%~".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.into_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_names_the_command_and_its_status() {
        let error = run(Command::new("sh").args(["-c", "exit 3"])).unwrap_err();
        assert_eq!(error.to_string(), "`sh -c 'exit 3'` failed: exit status: 3");
    }

    #[test]
    fn output_shows_what_the_command_complained_about() {
        let error = output(Command::new("sh").args(["-c", "echo no such thing >&2; exit 1"])).unwrap_err();
        assert!(format!("{error:#}").starts_with("no such thing: `sh -c"), "{error:#}");
    }
}

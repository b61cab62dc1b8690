//! A machine that hangs is ended, and it is said at what it hung.

use std::io::{BufRead, BufReader, Read};
use std::process::Child;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::process;

const TICK: Duration = Duration::from_millis(100);

/// How long a machine may take.
#[derive(Clone, Copy)]
pub(super) struct Bounds {
    /// Until the next line. A boot takes some seconds, a test half a minute; this is a busy host's share.
    pub(super) silence: Duration,
    /// In all.
    pub(super) whole: Duration,
}

/// Hands every line that comes from `console` to `show` until it is closed, which it is when `child` has ended, and ends
/// it when it takes too long.
pub(super) fn lines(
    child: &mut Child,
    console: impl Read,
    bounds: Bounds,
    mut show: impl FnMut(&str),
) -> Result<()> {
    let begun = Instant::now();
    let heard = Mutex::new((Instant::now(), String::new()));
    let done = AtomicBool::new(false);
    let mut fault = None;
    let result = thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                fault = overdue(begun, &heard, bounds);
                if process::interrupted() || fault.is_some() {
                    child.kill().ok();
                    return;
                }
                thread::sleep(TICK);
            }
        });
        let result = read(console, |line| {
            if let Ok(mut heard) = heard.lock() {
                *heard = (Instant::now(), line.to_owned());
            }
            show(line);
        });
        done.store(true, Ordering::Relaxed);
        result
    });
    process::check_interrupted()?;
    match fault {
        Some(fault) => bail!("{fault}"),
        None => result,
    }
}

fn overdue(begun: Instant, heard: &Mutex<(Instant, String)>, bounds: Bounds) -> Option<String> {
    if begun.elapsed() > bounds.whole {
        return Some(format!("the machine still runs after {} s: ended", bounds.whole.as_secs()));
    }
    let (at, line) = &*heard.lock().ok()?;
    let said = if line.is_empty() { "nothing at all".to_owned() } else { format!("`{line}`") };
    (at.elapsed() > bounds.silence).then(|| {
        format!(
            "the machine has been silent for {} s: ended; it had last said {said}",
            bounds.silence.as_secs()
        )
    })
}

fn read(console: impl Read, mut show: impl FnMut(&str)) -> Result<()> {
    for line in BufReader::new(console).split(b'\n') {
        let line = line.context("cannot read the console")?;
        show(String::from_utf8_lossy(&line).trim_end_matches('\r'));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    /// What became of a shell script in place of a machine, and what it said.
    fn watched(script: &str, silence: Duration, whole: Duration) -> (Result<()>, Vec<String>) {
        // In place of the shell, so that nobody else holds the pipe.
        let mut child =
            Command::new("sh").args(["-c", script]).stdout(Stdio::piped()).spawn().expect("there is a shell");
        let console = child.stdout.take().unwrap();
        let mut shown = Vec::new();
        let result =
            lines(&mut child, console, Bounds { silence, whole }, |line| shown.push(line.to_owned()));
        child.kill().ok();
        child.wait().unwrap();
        (result, shown)
    }

    const LONG: Duration = Duration::from_secs(600);
    const SHORT: Duration = Duration::from_millis(300);

    #[test]
    fn a_machine_that_ends_has_its_lines_shown() {
        let (result, shown) = watched("printf 'one\\r\\ntwo\\n'", LONG, LONG);
        result.unwrap();
        assert_eq!(shown, ["one", "two"]);
    }

    #[test]
    fn a_machine_that_falls_silent_is_ended_and_its_last_words_are_told() {
        let (result, _) = watched("echo last words; exec sleep 1000", SHORT, LONG);
        let error = result.unwrap_err().to_string();
        assert!(error.contains("silent") && error.contains("`last words`"), "{error}");
        let (result, _) = watched("exec sleep 1000", SHORT, LONG);
        assert!(result.unwrap_err().to_string().contains("nothing at all"));
    }

    #[test]
    fn a_machine_that_talks_for_ever_is_ended_too() {
        let (result, shown) = watched("while :; do echo again; sleep 0.05; done", LONG, SHORT);
        assert!(result.unwrap_err().to_string().contains("still runs"));
        assert!(!shown.is_empty());
    }
}

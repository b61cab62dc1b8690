//! Runs a program of the node's for what it prints, by a deadline.

use std::io::{self, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use super::part::{Lack, MOST};

/// Where nodes have their programs.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Between two looks whether it has ended.
const PAUSE: Duration = Duration::from_millis(5);

/// What a program has printed.
pub(super) struct Printed {
    pub(super) success: bool,
    pub(super) output: String,
    pub(super) errors: String,
}

/// Runs a program without input and with no environment but `PATH`. It is killed at the deadline.
pub(super) fn run(program: &Path, arguments: &[&str], by: Instant) -> Result<Printed, Lack> {
    let name = program.display().to_string();
    let mut command = Command::new(program);
    command.args(arguments).env_clear().env("PATH", PATH).stdin(Stdio::null());
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| Lack::of(&name, &error))?;
    let (output, errors) = (read(child.stdout.take()), read(child.stderr.take()));
    let success = wait(&mut child, by).map_err(|error| Lack::Failed(format!("{name}: {error}")))?;
    Ok(Printed { success, output: taken(&output, by), errors: taken(&errors, by) })
}

fn wait(child: &mut Child, by: Instant) -> io::Result<bool> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status.success());
        }
        if Instant::now() >= by {
            child.kill()?;
            child.wait()?;
            return Err(io::Error::new(io::ErrorKind::TimedOut, "it did not end in time"));
        }
        thread::sleep(PAUSE);
    }
}

/// Reads beside the program, which would wait for a reader otherwise.
fn read(pipe: Option<impl Read + Send + 'static>) -> Receiver<String> {
    let (done, text) = channel();
    let read = move || {
        let mut bytes = Vec::new();
        let most = u64::try_from(MOST).unwrap_or(u64::MAX);
        // What was read before an error is what there is.
        let _broken = pipe.map(|pipe| pipe.take(most).read_to_end(&mut bytes));
        let _late = done.send(String::from_utf8_lossy(&bytes).into_owned());
    };
    // Without a thread there is no text.
    let _threadless = thread::Builder::new().name("pipe".to_owned()).spawn(read);
    text
}

/// A program that it has started may still hold the pipe.
fn taken(text: &Receiver<String>, by: Instant) -> String {
    let left = by.saturating_duration_since(Instant::now()).max(PAUSE);
    text.recv_timeout(left).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_does_not_end_is_killed_and_one_that_is_not_there_is_absent() {
        let begun = Instant::now();
        let by = begun + Duration::from_millis(300);
        let slow = run(Path::new("sleep"), &["60"], by);
        assert!(matches!(slow, Err(Lack::Failed(why)) if why.contains("in time")));
        assert!(begun.elapsed() < Duration::from_secs(10));
        let by = Instant::now() + Duration::from_secs(10);
        assert!(matches!(run(Path::new("no-such-program"), &[], by), Err(Lack::Absent(_))));
        let said = run(Path::new("sh"), &["-c", "echo $HOME-out; echo err >&2; exit 3"], by).ok().unwrap();
        assert_eq!((said.success, &*said.output, &*said.errors), (false, "-out\n", "err\n"));
    }
}

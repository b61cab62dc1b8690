//! A program that is given bytes, says some, and ends, in a time that may be limited.

use std::fs::File;
use std::io::{self, ErrorKind, Read as _, Seek as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::memfd::{MFdFlags, memfd_create};

/// The most that is read of a program: results are a few kilobytes.
const MAX_OUTPUT: usize = 16 << 20;

/// How a program ended.
#[derive(Debug)]
pub struct Ended {
    /// How.
    pub status: ExitStatus,
    /// What it has written.
    pub output: Vec<u8>,
}

/// Runs a program with `input` as its standard input. It is a file: a program may say all that it has to say before it reads any of it, or
/// read nothing.
///
/// # Errors
/// The system's; `TimedOut` when it has not ended by `deadline`, after which it is killed.
pub fn run(command: &mut Command, input: &[u8], deadline: Option<Instant>) -> io::Result<Ended> {
    let mut file = File::from(memfd_create("configuration", MFdFlags::MFD_CLOEXEC)?);
    file.write_all(input)?;
    file.rewind()?;
    let mut child = command.stdin(file).stdout(Stdio::piped()).spawn()?;
    let output = child.stdout.take().map_or(Ok(Vec::new()), |stdout| read(stdout, deadline));
    let ended = output.and_then(|output| Ok(Ended { status: wait(&mut child, deadline)?, output }));
    if ended.is_err() {
        let _ended_already = child.kill();
        let _status = child.wait();
    }
    ended
}

/// Calls a kept program by the name that it had: one that is many plugins goes by its name.
pub(crate) fn by_its_name<'a>(command: &'a mut Command, kept: &Path) -> &'a mut Command {
    command.arg0(kept.with_extension(""))
}

/// Whether there is a program.
pub fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

fn read(mut stdout: ChildStdout, deadline: Option<Instant>) -> io::Result<Vec<u8>> {
    let (mut output, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        let patience = match left(deadline)? {
            // Rounded up: it is not to be asked for again and again before the deadline.
            Some(left) => PollTimeout::try_from(left + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX),
            None => PollTimeout::NONE,
        };
        match poll(&mut [PollFd::new(stdout.as_fd(), PollFlags::POLLIN)], patience) {
            Ok(0) | Err(nix::errno::Errno::EINTR) => continue,
            Ok(_) => {}
            Err(errno) => return Err(errno.into()),
        }
        match stdout.read(&mut piece) {
            Ok(0) => return Ok(output),
            Ok(read) if output.len() + read > MAX_OUTPUT => {
                return Err(io::Error::new(ErrorKind::FileTooLarge, "it says too much"));
            }
            Ok(read) => output.extend_from_slice(&piece[..read]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn wait(child: &mut Child, deadline: Option<Instant>) -> io::Result<ExitStatus> {
    if deadline.is_none() {
        return child.wait();
    }
    let mut pause = Duration::from_micros(100);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        sleep(left(deadline)?.unwrap_or_default().min(pause));
        pause = (pause * 2).min(Duration::from_millis(10));
    }
}

/// What is left until the deadline; none where there is none.
fn left(deadline: Option<Instant>) -> io::Result<Option<Duration>> {
    let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
    if left.is_some_and(|left| left.is_zero()) { Err(ErrorKind::TimedOut.into()) } else { Ok(left) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kept_program_hears_the_name_that_it_had() {
        let folder = tempfile::tempdir().unwrap();
        let kept = folder.path().join("bridge.orig");
        std::os::unix::fs::symlink("/bin/sh", &kept).unwrap();
        let mut command = Command::new(&kept);
        let ended = run(by_its_name(&mut command, &kept), b"echo $0", None).unwrap();
        let called = String::from_utf8(ended.output).unwrap();
        assert_eq!(Path::new(called.trim()), folder.path().join("bridge"));
    }
}

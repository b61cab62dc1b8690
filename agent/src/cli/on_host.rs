//! Among the host's own files, from a privileged pod that sees the host's processes.
//!
//! The pod's program is not one of those files. A statically linked one needs none of them: it is started again by the descriptor that is
//! open on it.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use nix::sched::{CloneFlags, setns};

/// The mount namespace of the host's first process.
const HOST: &str = "/proc/1/ns/mnt";

/// This program.
const SELF: &str = "/proc/self/exe";

/// Starts this program again with these arguments in the host's mount namespace. Returns only when that fails.
pub(super) fn start_again(arguments: &[&std::ffi::OsStr]) -> io::Error {
    let opened = File::open(HOST).and_then(|host| Ok((host, File::open(SELF)?)));
    let (host, program) = match opened {
        Ok(opened) => opened,
        Err(error) => return error,
    };
    if let Err(errno) = setns(host, CloneFlags::CLONE_NEWNS) {
        return errno.into();
    }
    // The descriptor closes with the start of the program, which is loaded by then.
    Command::new(format!("/proc/self/fd/{}", program.as_raw_fd())).args(arguments).exec()
}

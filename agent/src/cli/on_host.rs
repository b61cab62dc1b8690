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

/// Where a host has its programs (`_PATH_STDPATH` of glibc's `paths.h`, and what is installed locally): plugins look for `iptables`.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

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
    again(&format!("/proc/self/fd/{}", program.as_raw_fd()), arguments).exec()
}

fn again(program: &str, arguments: &[&std::ffi::OsStr]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).env("PATH", PATH);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hosts_programs_are_looked_for_where_hosts_have_them_and_not_where_the_image_has_its_own() {
        let command = again("/proc/self/fd/3", &["uninstall".as_ref()]);
        let path = command.get_envs().find(|(name, _)| *name == "PATH").and_then(|(_, path)| path);
        let path = path.and_then(|path| path.to_str()).unwrap();
        assert!(
            ["/usr/sbin", "/sbin", "/usr/local/sbin"].iter().all(|at| path.split(':').any(|it| it == *at))
        );
    }
}

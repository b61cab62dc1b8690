//! Descriptors of sockets that other processes hold (`pidfd_getfd`, since Linux 5.6).

use std::collections::HashSet;
use std::fs;
use std::os::fd::{OwnedFd, RawFd};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::io;
use rustix::net::sockopt::socket_cookie;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

use crate::fdinfo;

/// How long processes are looked through.
const PATIENCE: Duration = Duration::from_secs(5);

/// Gives `found` a descriptor of each of these sockets, by inode, that a process in this namespace of processes has open, with its cookie: an inode's number may
/// be another socket's by now, a cookie never. A socket that several processes have is found several times. `found` says whether there is more to find.
pub(super) fn find_held_sockets(inodes: &HashSet<u32>, mut found: impl FnMut(u64, OwnedFd) -> bool) {
    let until = Instant::now() + PATIENCE;
    for process in processes() {
        for descriptor in numbers_in(&format!("/proc/{}/fdinfo", process.as_raw_nonzero())) {
            if Instant::now() > until {
                return;
            }
            let is_one = inode(process, descriptor).is_some_and(|inode| inodes.contains(&inode));
            if is_one
                && let Ok((cookie, socket)) = taken(process, descriptor)
                && !found(cookie, socket)
            {
                return;
            }
        }
    }
}

/// All of them, those in this thread's network namespace first: a socket is most likely theirs.
fn processes() -> Vec<Pid> {
    let namespace = |process: &str| fs::read_link(format!("/proc/{process}/ns/net")).ok();
    let own = namespace("thread-self");
    let mut all: Vec<_> = numbers_in("/proc").filter_map(Pid::from_raw).collect();
    all.sort_by_cached_key(|process| namespace(&process.as_raw_nonzero().to_string()) != own);
    all
}

/// The inode of what a process has open. `fd` would tell by a link, which is for the process's user alone.
fn inode(process: Pid, descriptor: RawFd) -> Option<u32> {
    fdinfo::of(process.as_raw_nonzero(), descriptor, "ino").ok()
}

fn taken(process: Pid, descriptor: RawFd) -> io::Result<(u64, OwnedFd)> {
    let process = pidfd_open(process, PidfdFlags::empty())?;
    let socket = pidfd_getfd(process, descriptor, PidfdGetfdFlags::empty())?;
    Ok((socket_cookie(&socket)?, socket))
}

/// The entries of a directory that are numbers; none of one that may not be read.
fn numbers_in(directory: impl AsRef<Path>) -> impl Iterator<Item = i32> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::fd::AsRawFd as _;

    use rustix::process::getpid;

    use super::*;

    #[test]
    fn a_socket_of_this_process_is_found() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let cookie = socket_cookie(&socket).unwrap();
        let inode = inode(getpid(), socket.as_raw_fd()).unwrap();
        let mut cookies = Vec::new();
        find_held_sockets(&HashSet::from([inode]), |cookie, taken| {
            cookies.push((cookie, taken.as_raw_fd() == socket.as_raw_fd()));
            false
        });
        assert_eq!(cookies, [(cookie, false)]);
    }
}

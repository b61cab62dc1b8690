//! What the kernel says of an open descriptor (`/proc/PID/fdinfo/FD`, proc_pid_fdinfo(5)): a key and a value a line.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, AsRawFd as _, RawFd};
use std::str::FromStr;

/// Bytes that are read. What is asked for is in the first lines, and there may be a million behind them.
const FIRST_LINES: u64 = 1024;

/// The number under this key of a descriptor of the calling thread.
///
/// # Errors
/// The kernel's; `InvalidData` where it says no such number.
pub(crate) fn own<N: FromStr>(descriptor: impl AsFd, key: &str) -> io::Result<N> {
    of("thread-self", descriptor.as_fd().as_raw_fd(), key)
}

/// The same of a descriptor of another process. Whoever may trace the process may read it (since Linux 5.14).
///
/// # Errors
/// As [`own`].
pub(crate) fn of<N: FromStr>(process: impl Display, descriptor: RawFd, key: &str) -> io::Result<N> {
    let mut text = String::new();
    File::open(format!("/proc/{process}/fdinfo/{descriptor}"))?
        .take(FIRST_LINES)
        .read_to_string(&mut text)?;
    find(&text, key).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

fn find<N: FromStr>(text: &str, key: &str) -> Option<N> {
    text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_found_by_its_whole_key() {
        let text = "pos:\t0\nflags:\t02\nmnt_id:\t10\nino:\t7\n";
        assert_eq!((find::<u64>(text, "mnt_id"), find::<u32>(text, "ino")), (Some(10), Some(7)));
        for text in
            ["", "pos:\t0\nflags:\t02\n", "ino:\n", "ino:\tx", "ino:\t99999999999", "dino:\t7", "inode:\t7"]
        {
            assert_eq!(find::<u32>(text, "ino"), None, "{text}");
        }
    }

    #[test]
    fn the_calling_threads_descriptors_have_numbers() {
        let file = File::open("/proc/self/status").unwrap();
        let mount: u64 = own(&file, "mnt_id").unwrap();
        assert_eq!(of::<u64>(std::process::id(), file.as_raw_fd(), "mnt_id").unwrap(), mount);
        assert_eq!(own::<u64>(&file, "ifindex").unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}

//! The network namespace that a socket belongs to, without a look into `/proc`.
//!
//! This is a crate of its own because the question takes `unsafe` and no crate asks it yet; the plugin forbids itself any.

use std::io;
use std::os::fd::{AsFd, AsRawFd as _, FromRawFd as _, OwnedFd};

mod request {
    use nix::libc::SIOCGSKNS;

    nix::ioctl_none_bad!(socket_namespace, SIOCGSKNS);
}

/// Opens the namespace in which a socket was made, as its path in `/proc` would be opened: read only, closed on exec
/// (`SIOCGSKNS`, Linux 4.9).
///
/// # Errors
/// `EPERM` without `CAP_NET_ADMIN` in that namespace; `ENOTTY` for what is no socket.
pub fn namespace_of(socket: &impl AsFd) -> io::Result<OwnedFd> {
    // SAFETY: the request has no argument, so the kernel reads and writes no memory of this process.
    let number = unsafe { request::socket_namespace(socket.as_fd().as_raw_fd()) }?;
    // SAFETY: the kernel has made this descriptor for the answer, so nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::net::UdpSocket;
    use std::os::unix::fs::MetadataExt as _;

    use nix::fcntl::{FcntlArg, FdFlag, fcntl};

    use super::*;

    #[test]
    fn it_is_the_one_that_proc_names_and_does_not_outlive_exec() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let found = namespace_of(&socket).unwrap();
        let flags = FdFlag::from_bits_retain(fcntl(&found, FcntlArg::F_GETFD).unwrap());
        assert!(flags.contains(FdFlag::FD_CLOEXEC));
        let (found, named) =
            (File::from(found).metadata().unwrap(), fs::metadata("/proc/thread-self/ns/net").unwrap());
        assert_eq!((found.dev(), found.ino()), (named.dev(), named.ino()));
    }

    #[test]
    fn what_is_no_socket_has_none() {
        let error = namespace_of(&File::open("/dev/null").unwrap()).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(nix::libc::ENOTTY));
    }
}

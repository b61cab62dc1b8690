//! A client's own address: an abstract name that says on which processor the client runs, so that the agent can keep off it.
//!
//! The kernel has no other way to tell that costs the client next to nothing, and none at all before the client says something.

use std::io;
use std::os::fd::AsRawFd as _;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::path::Path;
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

use nix::errno::Errno;
use nix::sched::sched_getcpu;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, bind, connect, socket};

/// What the name begins with; process, number of the connection and processor follow.
const PREFIX: &str = "shunt-client/";

/// The processor on which this thread runs, if the kernel says so.
pub fn this_processor() -> Option<usize> {
    sched_getcpu().ok()
}

/// Connects to the socket at `path` from an address that says which processor is the client's.
///
/// # Errors
/// The kernel's.
pub(crate) fn connect_from(path: &Path, processor: Option<usize>) -> io::Result<UnixStream> {
    let listener = UnixAddr::new(path)?;
    let socket = socket(AddressFamily::Unix, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
    // Whoever has no name is served as well. It is taken where another process has this number, in a namespace of its own.
    if let Some(processor) = processor {
        let name = name(processor);
        let _unnamed =
            UnixAddr::new_abstract(name.as_bytes()).and_then(|name| bind(socket.as_raw_fd(), &name));
    }
    connect(socket.as_raw_fd(), &listener)?;
    Ok(socket.into())
}

/// Whether somebody listens at `path`, who does not hear of the question: it comes from a socket of another kind, which the kernel does not let
/// through to a listener (`EPROTOTYPE`), and for which it finds nobody where the listener has ended (`unix_find_bsd`, net/unix/af_unix.c).
///
/// # Errors
/// As to connect there: `ECONNREFUSED` where nobody listens any more, `ENOENT` where nobody ever did, `EPROTOTYPE` where a socket for datagrams is.
pub fn is_listened_to(path: &Path) -> io::Result<()> {
    let listener = UnixAddr::new(path)?;
    let question = socket(AddressFamily::Unix, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
    match connect(question.as_raw_fd(), &listener) {
        Err(Errno::EPROTOTYPE) => Ok(()),
        Err(errno) => Err(errno.into()),
        // To whoever is of this kind no client gets through.
        Ok(()) => Err(Errno::EPROTOTYPE.into()),
    }
}

fn name(processor: usize) -> String {
    static CONNECTIONS: AtomicU32 = AtomicU32::new(0);
    let number = CONNECTIONS.fetch_add(1, Ordering::Relaxed);
    format!("{PREFIX}{}/{number}/{processor}", process::id())
}

/// The processor on which a client is at work, if its address says so.
pub fn processor_of(client: &SocketAddr) -> Option<usize> {
    let name = std::str::from_utf8(client.as_abstract_name()?).ok()?;
    name.strip_prefix(PREFIX)?.rsplit_once('/')?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::{UnixDatagram, UnixListener};

    use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
    use nix::unistd::Pid;

    use super::*;

    #[test]
    fn a_client_says_where_it_runs_however_many_connections_it_has() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        // Wherever this thread may run is where it runs.
        let only = sched_getaffinity(Pid::from_raw(0)).unwrap();
        let only = (0..CpuSet::count()).find(|processor| only.is_set(*processor).unwrap()).unwrap();
        let mut there = CpuSet::new();
        there.set(only).unwrap();
        sched_setaffinity(Pid::from_raw(0), &there).unwrap();
        let _clients = [(); 2].map(|()| connect_from(&path, this_processor()).unwrap());
        let seen = [(); 2].map(|()| processor_of(&listener.accept().unwrap().1));
        assert_eq!(seen, [Some(only); 2]);
    }

    #[test]
    fn a_listener_is_told_from_what_it_leaves_behind_and_hears_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        let kind = || is_listened_to(&path).unwrap_err().kind();
        assert_eq!(kind(), io::ErrorKind::NotFound);
        let listener = UnixListener::bind(&path).unwrap();
        is_listened_to(&path).unwrap();
        listener.set_nonblocking(true).unwrap();
        assert_eq!(listener.accept().unwrap_err().kind(), io::ErrorKind::WouldBlock);
        drop(listener);
        assert_eq!(kind(), io::ErrorKind::ConnectionRefused);
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "").unwrap();
        assert_eq!(kind(), io::ErrorKind::ConnectionRefused, "it is no socket at all");
        std::fs::remove_file(&path).unwrap();
        let _datagrams = UnixDatagram::bind(&path).unwrap();
        assert_eq!(is_listened_to(&path).unwrap_err().raw_os_error(), Some(Errno::EPROTOTYPE as i32));
    }

    #[test]
    fn other_names_say_nothing() {
        for name in ["", "shunt-client/", "shunt-client/7/0/", "shunt-client/7/0/x", "other/7/0/1"] {
            assert_eq!(processor_of(&SocketAddr::from_abstract_name(name).unwrap()), None, "{name}");
        }
        let told = SocketAddr::from_abstract_name("shunt-client/7/0/12").unwrap();
        assert_eq!(processor_of(&told), Some(12));
        assert_eq!(processor_of(&SocketAddr::from_pathname("/run/shunt-client/7/0/12").unwrap()), None);
    }
}

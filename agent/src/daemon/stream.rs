//! One client's socket, of which the runtime is told only what comes in.
//!
//! Tokio's own has it told of room to write as well, and a client makes room whenever it reads an answer (`unix_write_space`,
//! net/unix/af_unix.c): it would wake the runtime, on another processor, while it has things to do. Room is asked for when there is none.

use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;

use bytes::{Buf as _, Bytes, BytesMut};
use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Bytes that are read at a time; nearly every request is shorter.
const PIECE: usize = 4096;

/// A client's socket.
#[derive(Debug)]
pub(super) struct Stream(AsyncFd<UnixStream>);

impl Stream {
    /// Has the runtime listen to it.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn new(stream: UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        registered(stream, Interest::READABLE).map(Self)
    }

    /// Who the client is.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn user(&self) -> io::Result<u32> {
        Ok(getsockopt(self.0.get_ref(), PeerCredentials)?.uid())
    }

    /// Waits for something to read, and appends it; 0 bytes when the client has left. Cancelling it loses nothing.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) async fn read(&self, buffer: &mut BytesMut) -> io::Result<usize> {
        loop {
            let mut ready = self.0.readable().await?;
            let read = ready.try_io(|stream| {
                let mut piece = [0; PIECE];
                let read = stream.get_ref().read(&mut piece)?;
                buffer.extend_from_slice(&piece[..read]);
                Ok(read)
            });
            if let Ok(read) = read {
                return read;
            }
        }
    }

    /// Writes as much as there is room for.
    ///
    /// # Errors
    /// The kernel's; `WouldBlock` where there is none.
    pub(super) fn try_write(&self, wire: &[u8]) -> io::Result<usize> {
        self.0.get_ref().write(wire)
    }

    /// Writes all of it, as there is room.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) async fn write(&self, mut wire: Bytes) -> io::Result<()> {
        while !wire.is_empty() {
            match self.try_write(&wire) {
                Ok(taken) => wire.advance(taken),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.room().await?,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Waits until there is room to write.
    async fn room(&self) -> io::Result<()> {
        let same = self.0.get_ref().try_clone()?;
        registered(same, Interest::WRITABLE)?.writable().await.map(drop)
    }
}

#[expect(
    deprecated,
    reason = "what replaces it is unsafe, for what may have another descriptor from call to call; a socket has one"
)]
fn registered(stream: UnixStream, interest: Interest) -> io::Result<AsyncFd<UnixStream>> {
    AsyncFd::with_interest(stream, interest)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::fd::AsRawFd as _;
    use std::time::Duration;

    use nix::libc::{EPOLLIN, EPOLLOUT};
    use tokio::time::timeout;

    use super::super::test_runtime::run;
    use super::*;

    const MOMENT: Duration = Duration::from_millis(50);

    fn pair() -> (Stream, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        (Stream::new(ours).unwrap(), theirs)
    }

    #[test]
    fn what_a_client_says_is_heard_and_that_it_has_left() {
        run(async {
            let (ours, mut theirs) = pair();
            let mut heard = BytesMut::new();
            assert!(timeout(MOMENT, ours.read(&mut heard)).await.is_err(), "it has said nothing");
            theirs.write_all(b"one").unwrap();
            assert_eq!(ours.read(&mut heard).await.unwrap(), 3);
            theirs.write_all(b"two").unwrap();
            drop(theirs);
            assert_eq!(ours.read(&mut heard).await.unwrap(), 3);
            assert_eq!(ours.read(&mut heard).await.unwrap(), 0);
            assert_eq!(heard, "onetwo");
            assert_eq!(ours.user().unwrap(), nix::unistd::getuid().as_raw());
        });
    }

    #[test]
    fn more_than_there_is_room_for_is_written_as_it_is_read() {
        run(async {
            let (ours, mut theirs) = pair();
            let whole = Bytes::from(vec![7; 4 << 20]);
            assert!(timeout(MOMENT, ours.write(whole.clone())).await.is_err(), "nobody reads");
            assert_eq!(ours.try_write(&whole).unwrap_err().kind(), io::ErrorKind::WouldBlock);
            let reading = std::thread::spawn(move || {
                let mut read = Vec::new();
                theirs.read_to_end(&mut read).map(|_| read.len())
            });
            timeout(Duration::from_secs(10), ours.write(whole.clone())).await.unwrap().unwrap();
            drop(ours);
            // And what was taken the first time.
            assert!(reading.join().unwrap().unwrap() > whole.len());
        });
    }

    /// What the kernel wakes the runtime for, by its own word (proc(5), `/proc/pid/fdinfo`).
    fn interest_in(stream: &Stream) -> u32 {
        let number = stream.0.get_ref().as_raw_fd();
        let own = fs::read_dir("/proc/self/fdinfo").unwrap().map_while(Result::ok);
        let told = own.filter_map(|entry| fs::read_to_string(entry.path()).ok());
        let lines: Vec<String> =
            told.flat_map(|said| said.lines().map(str::to_owned).collect::<Vec<_>>()).collect();
        let masks = lines.iter().filter_map(|line| {
            let mut words = line.split_whitespace();
            let is_it = words.next() == Some("tfd:") && words.next()?.parse() == Ok(number);
            is_it.then(|| u32::from_str_radix(words.nth(1)?, 16).ok()).flatten()
        });
        masks.fold(0, |all, mask| all | mask)
    }

    #[test]
    fn a_client_that_reads_wakes_nobody() {
        run(async {
            let (ours, _theirs) = pair();
            assert_eq!(interest_in(&ours) & (EPOLLIN | EPOLLOUT) as u32, EPOLLIN as u32);
        });
    }
}

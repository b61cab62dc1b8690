//! Requests and their answers, blocking, on one socket.
//!
//! Requests go out in batches: the kernel works through all messages of one `sendmsg`. It does not stop at the first that fails, so
//! a batch holds only what is undone together. A dump during which its table changed (`NLM_F_DUMP_INTR`) is asked for again.

use std::ffi::OsString;
use std::io;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use netlink_sys::protocols::NETLINK_ROUTE;
use nix::errno::Errno;
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::BindToDevice;

use crate::error::NetlinkError;
use crate::message::{Answer, messages, read};
use crate::request::{Reply, Request};
use crate::socket::{PATIENCE, Socket};

/// How often a table is read that changes meanwhile.
const DUMP_TRIES: u32 = 5;

/// The payloads of the messages that answer one request of a batch.
#[derive(Debug, Default)]
pub struct Answers(Vec<Vec<u8>>);

impl Answers {
    /// Each of them, read.
    pub fn all<T: Reply>(&self) -> Vec<T> {
        self.0.iter().filter_map(|payload| T::read(payload)).collect()
    }

    /// The first of them.
    pub fn first<T: Reply>(&self) -> Option<T> {
        self.0.iter().find_map(|payload| T::read(payload))
    }
}

/// An open socket for requests.
#[derive(Debug)]
pub struct Connection {
    socket: Socket,
    sequence: u32,
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Connection {
    /// Opens a routing socket in the calling thread's network namespace; it stays there wherever the thread goes.
    ///
    /// # Errors
    /// [`NetlinkError::Socket`].
    pub fn open() -> Result<Self, NetlinkError> {
        Self::of(NETLINK_ROUTE as i32)
    }

    /// The same of another protocol (`NETLINK_NETFILTER`).
    ///
    /// # Errors
    /// [`NetlinkError::Socket`]: the kernel lacks it.
    pub fn of(protocol: i32) -> Result<Self, NetlinkError> {
        Ok(Self { socket: Socket::open(protocol)?, sequence: 0 })
    }

    /// The same, which waits for a lost answer no longer than this.
    ///
    /// # Errors
    /// [`NetlinkError::Socket`].
    pub(crate) fn with_patience(self, patience: Duration) -> Result<Self, NetlinkError> {
        self.socket.set_patience(patience)?;
        Ok(self)
    }

    /// Has something done.
    ///
    /// # Errors
    /// [`NetlinkError::Refused`] with the kernel's error number.
    pub fn run(&mut self, request: Request) -> Result<(), NetlinkError> {
        self.exchange(&[request], &mut |_, _| {})?.pop().unwrap_or(Ok(()))
    }

    /// Asks for one thing; none if there is no such thing.
    ///
    /// # Errors
    /// Every kind of [`NetlinkError`], other than that there is no such thing.
    pub fn get<T: Reply>(&mut self, request: Request<T>) -> Result<Option<T>, NetlinkError> {
        let mut found = None;
        let said = self.exchange(&[request.any()], &mut |_, payload| {
            found = found.take().or_else(|| T::read(payload));
        })?;
        match said.into_iter().next() {
            Some(Err(error)) if error.is_missing() => Ok(None),
            Some(Err(error)) => Err(error),
            _ => Ok(found),
        }
    }

    /// Asks for a whole table, each entry once.
    ///
    /// # Errors
    /// [`NetlinkError::Interrupted`] when it changed each time while it was read.
    pub fn list<T: Reply>(&mut self, request: Request<T>) -> Result<Vec<T>, NetlinkError> {
        self.table(&request.any(), T::read)
    }

    /// Asks for a whole table, and hands each entry on as it comes, until `each` has enough; the rest of it is dropped with the connection. Returns whether
    /// that was the whole table. An entry that comes or goes meanwhile may be missed, or come twice.
    ///
    /// # Errors
    /// Every kind of [`NetlinkError`], other than that the table changed.
    pub fn walk<T: Reply>(
        mut self,
        request: Request<T>,
        mut each: impl FnMut(T) -> ControlFlow<()>,
    ) -> Result<bool, NetlinkError> {
        let request = request.any();
        self.sequence = self.sequence.wrapping_add(1);
        let mut wire = Vec::new();
        request.emit(self.sequence, false, &mut wire);
        self.socket.send(&wire)?;
        let (mut ends, mut goes_on) = (vec![End::default()], true);
        while goes_on && ends.iter().any(|end| end.said.is_none()) {
            let datagram = self.socket.receive().map_err(|error| late(&request, error))?;
            take(datagram, self.sequence, &mut ends, &mut |_, payload| {
                if goes_on && let Some(entry) = T::read(payload) {
                    goes_on = each(entry).is_continue();
                }
            })?;
        }
        match ends.into_iter().try_for_each(|end| end.outcome(&request)) {
            Ok(()) | Err(NetlinkError::Interrupted { .. }) => Ok(goes_on),
            Err(error) => Err(error),
        }
    }

    /// Sends requests in one piece; the first failure is the error, whatever became of the others.
    pub fn run_all(&mut self, requests: Vec<Request>) -> Result<Vec<Answers>, NetlinkError> {
        self.batch(requests)?.into_iter().collect()
    }

    /// Sends requests in one piece and says what became of each. At most one of them may be a dump, and it comes last.
    ///
    /// # Errors
    /// [`NetlinkError::Socket`] when nothing can be said about any of them.
    pub fn batch(
        &mut self,
        requests: Vec<Request>,
    ) -> Result<Vec<Result<Answers, NetlinkError>>, NetlinkError> {
        let mut answers: Vec<_> = requests.iter().map(|_| Answers::default()).collect();
        let said = self.exchange(&requests, &mut |place, payload| {
            if let Some(answers) = answers.get_mut(place) {
                answers.0.push(payload.to_vec());
            }
        })?;
        let ends = said.into_iter().zip(answers).zip(&requests);
        let ends = ends.map(|((said, answers), request)| match said {
            Err(NetlinkError::Interrupted { .. }) => {
                self.table(request, |payload| Some(payload.to_vec())).map(Answers)
            }
            said => said.map(|()| answers),
        });
        Ok(ends.collect())
    }

    /// Whether no link of the socket's namespace has this name. It is asked for where there most likely is none: a request for a link
    /// takes the lock of all network configuration, and `SIOCGIFINDEX` may load a module (`dev_load`, net/core/dev_ioctl.c). Binding
    /// a socket to a device takes neither (`sock_setbindtodevice`, net/core/sock.c).
    ///
    /// # Errors
    /// [`NetlinkError::Socket`].
    pub fn has_no_link(&self, name: &str) -> Result<bool, NetlinkError> {
        match setsockopt(&self.socket, BindToDevice, &OsString::from(name)) {
            Err(Errno::ENODEV) => Ok(true),
            Err(errno) => Err(io::Error::from(errno).into()),
            Ok(()) => {
                setsockopt(&self.socket, BindToDevice, &OsString::new()).map_err(io::Error::from)?;
                Ok(false)
            }
        }
    }

    /// Reads a table until nothing changed meanwhile.
    fn table<T>(
        &mut self,
        request: &Request,
        read: impl Fn(&[u8]) -> Option<T>,
    ) -> Result<Vec<T>, NetlinkError> {
        for _ in 0..DUMP_TRIES {
            let mut found = Vec::new();
            let mut each = |_, payload: &[u8]| found.extend(read(payload));
            match self.exchange(std::slice::from_ref(request), &mut each)?.pop() {
                Some(Err(NetlinkError::Interrupted { .. })) => {}
                Some(Err(error)) => return Err(error),
                _ => return Ok(found),
            }
        }
        Err(interrupted(request))
    }

    /// Sends requests in one piece. `each` gets every part of an answer with its request's place.
    ///
    /// The kernel names every request that failed, and does one after the other. So it is asked to acknowledge the last only: all
    /// before are done then, unless it said otherwise.
    fn exchange(
        &mut self,
        requests: &[Request],
        each: &mut dyn FnMut(usize, &[u8]),
    ) -> Result<Vec<Result<(), NetlinkError>>, NetlinkError> {
        let Some(last) = requests.last() else { return Ok(Vec::new()) };
        let first = self.sequence.wrapping_add(1);
        let mut wire = Vec::with_capacity(1024);
        for (place, request) in requests.iter().enumerate() {
            self.sequence = self.sequence.wrapping_add(1);
            request.emit(self.sequence, place + 1 == requests.len() && !request.is_dump(), &mut wire);
        }
        self.socket.send(&wire)?;
        let mut ends: Vec<_> = requests.iter().map(|_| End::default()).collect();
        while ends.last().is_some_and(|last| last.said.is_none()) {
            let datagram = self.socket.receive().map_err(|error| late(last, error))?;
            take(datagram, first, &mut ends, each)?;
        }
        Ok(requests.iter().zip(ends).map(|(request, end)| end.outcome(request)).collect())
    }
}

/// What the kernel has said of a request so far.
#[derive(Debug, Default)]
struct End {
    said: Option<Result<(), (Errno, Option<String>)>>,
    interrupted: bool,
}

impl End {
    fn outcome(self, request: &Request) -> Result<(), NetlinkError> {
        match self.said.unwrap_or(Ok(())) {
            Err((errno, detail)) => Err(NetlinkError::Refused { what: request.what.clone(), errno, detail }),
            // A dump says so at its end where the kernel gave it up for that (`EINTR`), and in its parts.
            Ok(()) if self.interrupted => Err(interrupted(request)),
            Ok(()) => Ok(()),
        }
    }
}

/// Hands each message of one datagram to the request that it answers; those of earlier requests are skipped.
fn take(
    datagram: &[u8],
    first: u32,
    ends: &mut [End],
    each: &mut dyn FnMut(usize, &[u8]),
) -> Result<(), NetlinkError> {
    for message in messages(datagram) {
        let message = message?;
        let place = message.sequence_number().wrapping_sub(first) as usize;
        let Some(end) = ends.get_mut(place) else { continue };
        match read(&message, &mut end.interrupted) {
            Answer::Part(payload) => each(place, payload),
            Answer::End(said) => end.said = Some(said),
            Answer::Noop => {}
        }
    }
    Ok(())
}

fn interrupted(request: &Request) -> NetlinkError {
    NetlinkError::Interrupted { what: request.what.clone(), tries: DUMP_TRIES }
}

fn late(request: &Request, error: NetlinkError) -> NetlinkError {
    match error {
        NetlinkError::Socket(error) if error.kind() == io::ErrorKind::WouldBlock => {
            NetlinkError::TimedOut { what: request.what.clone(), seconds: PATIENCE.as_secs() }
        }
        other => other,
    }
}

#[cfg(test)]
mod tests;

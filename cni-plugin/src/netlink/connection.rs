//! A socket to the kernel's rtnetlink, bound to the namespace in which it was opened.
//!
//! Requests go out in batches: the kernel works through all messages of one `sendto` under one system call. It does not stop at the
//! first that fails, so a batch holds only what is undone together.

use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd};

use netlink_packet_core::NetlinkBuffer;
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};
use nix::errno::Errno;
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::BindToDevice;

use super::error::NetlinkError;
use super::request::Request;

const NLMSG_NOOP: u16 = 1;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;

/// The kernel fills at most this many bytes per datagram of a dump (`NLMSG_GOODSIZE` rounded up to 32 KiB).
const DATAGRAM: usize = 32 << 10;

/// One thing that the kernel said in answer to a request: the message's type and its bytes behind the netlink header.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(super) kind: u16,
    pub(super) payload: Vec<u8>,
}

/// What became of one request of a batch.
#[derive(Debug)]
struct Pending {
    what: String,
    answers: Vec<Answer>,
    outcome: Option<Result<(), NetlinkError>>,
}

/// An open socket.
#[derive(Debug)]
pub(crate) struct Connection {
    socket: Socket,
    sequence: u32,
}

impl Connection {
    /// Opens a socket in the calling thread's network namespace; it stays there wherever the thread goes.
    ///
    /// # Errors
    /// [`NetlinkError::Socket`].
    pub(crate) fn open() -> Result<Self, NetlinkError> {
        let socket = Socket::new(NETLINK_ROUTE)?;
        // Strict checking makes the kernel honour the filters of a dump (Linux 4.20); older ones send everything.
        let _ = socket.set_netlink_get_strict_chk(true);
        Ok(Self { socket, sequence: 0 })
    }

    /// Sends one request.
    ///
    /// # Errors
    /// Every kind of [`NetlinkError`].
    pub(crate) fn ask(&mut self, request: Request) -> Result<Vec<Answer>, NetlinkError> {
        self.batch(vec![request])?.pop().unwrap_or_else(|| Ok(Vec::new()))
    }

    /// Whether no link of the socket's namespace has this name. It is asked for whenever there most likely is none: a request for a link
    /// takes the lock of all network configuration, and `SIOCGIFINDEX` has a module looked for that may make one (`dev_load`,
    /// net/core/dev_ioctl.c). To keep a socket to a device takes neither (`sock_setbindtodevice`, net/core/sock.c).
    ///
    /// # Errors
    /// [`NetlinkError::Socket`].
    pub(crate) fn has_no_link(&self, name: &str) -> Result<bool, NetlinkError> {
        match setsockopt(&self.socket, BindToDevice, &OsString::from(name)) {
            Err(Errno::ENODEV) => Ok(true),
            Err(errno) => Err(std::io::Error::from(errno).into()),
            Ok(()) => {
                setsockopt(&self.socket, BindToDevice, &OsString::new()).map_err(std::io::Error::from)?;
                Ok(false)
            }
        }
    }

    /// Sends requests in one piece; the first failure is the error, whatever became of the others.
    ///
    /// # Errors
    /// Every kind of [`NetlinkError`].
    pub(crate) fn ask_all(&mut self, requests: Vec<Request>) -> Result<Vec<Vec<Answer>>, NetlinkError> {
        self.batch(requests)?.into_iter().collect()
    }

    /// Sends requests in one piece and says what became of each. At most one of them may be a list, and it comes last.
    ///
    /// The kernel says of each what it has failed of, and does one after the other. So it is asked to say of the last only that it was done:
    /// then all before are, unless it has said otherwise.
    ///
    /// # Errors
    /// [`NetlinkError::Socket`] when nothing can be said about any of them.
    pub(crate) fn batch(
        &mut self,
        requests: Vec<Request>,
    ) -> Result<Vec<Result<Vec<Answer>, NetlinkError>>, NetlinkError> {
        let first = self.sequence.wrapping_add(1);
        let mut wire = Vec::with_capacity(1024);
        let mut pending: Vec<Pending> = Vec::with_capacity(requests.len());
        let last = requests.len().saturating_sub(1);
        for (place, request) in requests.into_iter().enumerate() {
            self.sequence = self.sequence.wrapping_add(1);
            let what = request.emit(self.sequence, place == last, &mut wire);
            pending.push(Pending { what, answers: Vec::new(), outcome: None });
        }
        if pending.is_empty() {
            return Ok(Vec::new());
        }
        self.socket.send_to(&wire, &SocketAddr::new(0, 0), 0)?;
        let mut buffer = Vec::with_capacity(DATAGRAM);
        while pending.last().is_some_and(|last| last.outcome.is_none()) {
            buffer.clear();
            match self.socket.recv(&mut buffer, 0) {
                Ok(_) => take(&buffer, first, &mut pending)?,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(pending.into_iter().map(|one| one.outcome.unwrap_or(Ok(())).map(|()| one.answers)).collect())
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Hands each message of one datagram to the request that it answers.
fn take(mut datagram: &[u8], first: u32, pending: &mut [Pending]) -> Result<(), NetlinkError> {
    while !datagram.is_empty() {
        let message = NetlinkBuffer::new_checked(datagram)
            .map_err(|_| NetlinkError::Malformed { what: "talk to the kernel".to_owned() })?;
        let index = message.sequence_number().wrapping_sub(first) as usize;
        if let Some(one) = pending.get_mut(index) {
            one.hear(message.message_type(), message.payload());
        }
        let length = (message.length() as usize).next_multiple_of(4);
        datagram = datagram.get(length..).unwrap_or_default();
    }
    Ok(())
}

impl Pending {
    fn hear(&mut self, kind: u16, payload: &[u8]) {
        match kind {
            NLMSG_NOOP => {}
            NLMSG_DONE => self.outcome = Some(Ok(())),
            NLMSG_ERROR => {
                let code = payload.first_chunk::<4>().map_or(0, |code| i32::from_ne_bytes(*code));
                self.outcome = Some(match code {
                    0 => Ok(()),
                    code => Err(NetlinkError::Refused {
                        what: std::mem::take(&mut self.what),
                        errno: Errno::from_raw(-code),
                    }),
                });
            }
            kind => self.answers.push(Answer { kind, payload: payload.to_vec() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::{Link, Selector, requests};

    #[test]
    fn a_name_is_free_or_taken_and_the_socket_goes_on_as_before() {
        let mut connection = Connection::open().unwrap();
        for _ in 0..2 {
            assert!(connection.has_no_link("shunt-no-link").unwrap());
            assert!(!connection.has_no_link("lo").unwrap());
            let answers = connection.ask(requests::get_link(Selector::Name("lo"))).unwrap();
            assert_eq!(Link::first(&answers).unwrap().name, "lo");
        }
    }

    #[test]
    fn of_a_batch_the_kernel_says_what_failed_and_what_was_done_though_asked_of_the_last_only() {
        let mut connection = Connection::open().unwrap();
        let (there, missing) = (Selector::Name("lo"), Selector::Name("shunt-no-link"));
        for order in [[there, missing, there], [missing, there, missing], [missing, missing, there]] {
            let said = connection.batch(order.map(requests::get_link).into()).unwrap();
            for (selector, said) in order.iter().zip(said) {
                match selector {
                    Selector::Name("lo") => {
                        assert_eq!(Link::first(&said.unwrap()).unwrap().name, "lo");
                    }
                    _ => assert!(said.unwrap_err().is_missing()),
                }
            }
        }
        let list = requests::list_links(None);
        let said = connection.batch(vec![requests::get_link(missing), list]).unwrap();
        assert!(said[0].as_ref().is_err_and(NetlinkError::is_missing));
        assert!(Link::all(said[1].as_ref().unwrap()).iter().any(|link| link.name == "lo"));
    }
}

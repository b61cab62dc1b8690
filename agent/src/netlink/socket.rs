//! A blocking netlink socket: one request, all of its answers.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use netlink_packet_core::{NetlinkBuffer, NlasIterator};
use netlink_sys::{Socket, SocketAddr};
use nix::libc;

use crate::seams::{self, Seam};

/// Bytes of a netlink header, and what messages are aligned to.
const HEADER: usize = 16;
const ALIGN: usize = 4;

/// The kernel never puts more into one datagram of a dump (`NLMSG_GOODSIZE` and its growth, net/netlink/af_netlink.c).
const DATAGRAM: usize = 64 << 10;

/// How often a dump that the kernel calls inconsistent is begun again.
const DUMP_TRIES: u32 = 5;

/// Why the kernel did not answer.
#[derive(Debug, thiserror::Error)]
pub enum NetlinkError {
    /// The socket failed.
    #[error("netlink: {0}")]
    Socket(#[from] io::Error),
    /// The kernel refused the request.
    #[error("the kernel refused: {0}")]
    Refused(io::Error),
    /// The answer is cut short.
    #[error("the kernel's answer cannot be read: {0}")]
    Garbled(&'static str),
    /// What was dumped changed faster than it could be read.
    #[error("the kernel's table changed while it was read, {DUMP_TRIES} times")]
    Unsteady,
}

impl NetlinkError {
    /// Whether the kernel says that the thing asked about is not there.
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::Refused(error)
            if matches!(error.raw_os_error(), Some(libc::ENODEV | libc::ENOENT | libc::ENXIO)))
    }

    /// Whether the kernel says that an interface has no such address.
    pub fn means_no_address(&self) -> bool {
        matches!(self, Self::Refused(error) if error.raw_os_error() == Some(libc::EADDRNOTAVAIL))
    }

    /// Whether the kernel says that there is no such route.
    pub fn means_no_route(&self) -> bool {
        matches!(self, Self::Refused(error) if error.raw_os_error() == Some(libc::ESRCH))
    }

    /// Whether the kernel says that the thing is there already.
    pub fn means_exists(&self) -> bool {
        matches!(self, Self::Refused(error) if error.raw_os_error() == Some(libc::EEXIST))
    }
}

/// A socket for requests. Bound to the network namespace that it was opened in.
#[derive(Debug)]
pub struct RequestSocket {
    socket: Socket,
    sequence: u32,
    buffer: Vec<u8>,
}

impl AsFd for RequestSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl RequestSocket {
    /// Opens a socket of one protocol (`NETLINK_ROUTE`, `NETLINK_NETFILTER`).
    ///
    /// # Errors
    /// [`NetlinkError::Socket`]: the kernel lacks the protocol.
    pub fn open(protocol: i32) -> Result<Self, NetlinkError> {
        let socket = Socket::new(protocol as isize)?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Self { socket, sequence: 0, buffer: Vec::with_capacity(DATAGRAM) })
    }

    /// Asks for one thing; `each` gets the payload of what is answered.
    ///
    /// # Errors
    /// [`NetlinkError::Refused`] with the kernel's errno.
    pub fn get(
        &mut self,
        kind: u16,
        payload: &[u8],
        mut each: impl FnMut(&[u8]),
    ) -> Result<(), NetlinkError> {
        self.send(kind, (libc::NLM_F_REQUEST | libc::NLM_F_ACK) as u16, payload)?;
        self.receive(&mut each).map(|_| ())
    }

    /// Asks for several things in one piece, which the kernel does one after the other, whatever becomes of those before; `each` gets the payload
    /// of what is answered, with the place of what was asked. Says what became of each.
    ///
    /// # Errors
    /// [`NetlinkError::Socket`] when nothing can be said about any of them.
    pub fn get_in_one_piece<const N: usize>(
        &mut self,
        questions: [(u16, &[u8]); N],
        mut each: impl FnMut(usize, &[u8]),
    ) -> Result<[Result<(), NetlinkError>; N], NetlinkError> {
        let first = self.sequence.wrapping_add(1);
        let mut wire = Vec::with_capacity(N * 64);
        for (kind, payload) in questions {
            self.sequence = self.sequence.wrapping_add(1);
            wire.extend(message(
                kind,
                (libc::NLM_F_REQUEST | libc::NLM_F_ACK) as u16,
                self.sequence,
                payload,
            ));
        }
        seams::pass(Seam::Netlink)?;
        self.socket.send(&wire, 0)?;
        let mut outcomes = [const { None }; N];
        while outcomes.iter().any(Option::is_none) {
            self.hear()?;
            for message in messages(&self.buffer) {
                let message = message?;
                let place = message.sequence_number().wrapping_sub(first) as usize;
                let Some(outcome) = outcomes.get_mut(place) else { continue };
                match i32::from(message.message_type()) {
                    libc::NLMSG_ERROR => *outcome = Some(status(message.payload())),
                    libc::NLMSG_NOOP => {}
                    _ => each(place, message.payload()),
                }
            }
        }
        Ok(outcomes.map(|outcome| outcome.unwrap_or(Ok(()))))
    }

    /// Asks for something to be made, or changed if it is there.
    ///
    /// # Errors
    /// [`NetlinkError::Refused`] with the kernel's errno.
    pub fn create(&mut self, kind: u16, payload: &[u8]) -> Result<(), NetlinkError> {
        self.send(kind, (libc::NLM_F_REQUEST | libc::NLM_F_ACK | libc::NLM_F_CREATE) as u16, payload)?;
        self.receive(&mut |_| {}).map(|_| ())
    }

    /// Asks for a whole table; `each` gets every entry's payload, once.
    ///
    /// # Errors
    /// [`NetlinkError::Unsteady`] when it changed each time while it was read.
    pub fn dump<T>(
        &mut self,
        kind: u16,
        payload: &[u8],
        mut each: impl FnMut(&[u8]) -> Option<T>,
    ) -> Result<Vec<T>, NetlinkError> {
        for _ in 0..DUMP_TRIES {
            let mut entries = Vec::new();
            self.send(kind, (libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16, payload)?;
            if self.receive(&mut |payload| entries.extend(each(payload)))? {
                return Ok(entries);
            }
        }
        Err(NetlinkError::Unsteady)
    }

    /// Makes something that is not there yet.
    ///
    /// # Errors
    /// [`NetlinkError::Refused`], with `EEXIST` if it is.
    pub fn make(&mut self, kind: u16, payload: &[u8]) -> Result<(), NetlinkError> {
        let flags = libc::NLM_F_REQUEST | libc::NLM_F_ACK | libc::NLM_F_CREATE | libc::NLM_F_EXCL;
        self.send(kind, flags as u16, payload)?;
        self.receive(&mut |_| {}).map(|_| ())
    }

    /// Makes something, and puts it behind what is there in the same place.
    ///
    /// # Errors
    /// [`NetlinkError::Refused`], with `EEXIST` if the very same is there.
    pub fn append(&mut self, kind: u16, payload: &[u8]) -> Result<(), NetlinkError> {
        let flags = libc::NLM_F_REQUEST | libc::NLM_F_ACK | libc::NLM_F_CREATE | libc::NLM_F_APPEND;
        self.send(kind, flags as u16, payload)?;
        self.receive(&mut |_| {}).map(|_| ())
    }

    /// Makes something, in the place of what is there.
    ///
    /// # Errors
    /// [`NetlinkError::Refused`] with the kernel's errno.
    pub fn replace(&mut self, kind: u16, payload: &[u8]) -> Result<(), NetlinkError> {
        let flags = libc::NLM_F_REQUEST | libc::NLM_F_ACK | libc::NLM_F_CREATE | libc::NLM_F_REPLACE;
        self.send(kind, flags as u16, payload)?;
        self.receive(&mut |_| {}).map(|_| ())
    }

    fn send(&mut self, kind: u16, flags: u16, payload: &[u8]) -> Result<(), NetlinkError> {
        self.sequence = self.sequence.wrapping_add(1);
        let message = message(kind, flags, self.sequence, payload);
        seams::pass(Seam::Netlink)?;
        self.socket.send(&message, 0)?;
        Ok(())
    }

    /// Reads one datagram.
    fn hear(&mut self) -> Result<(), NetlinkError> {
        loop {
            self.buffer.clear();
            match self.socket.recv(&mut self.buffer, 0) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
                Ok(_) => return Ok(()),
            }
        }
    }

    /// Reads until the request is answered. False if a dump was inconsistent.
    fn receive(&mut self, each: &mut dyn FnMut(&[u8])) -> Result<bool, NetlinkError> {
        let mut consistent = true;
        loop {
            self.hear()?;
            for message in messages(&self.buffer) {
                let message = message?;
                if message.sequence_number() != self.sequence {
                    continue;
                }
                consistent &= i32::from(message.flags()) & libc::NLM_F_DUMP_INTR == 0;
                match i32::from(message.message_type()) {
                    libc::NLMSG_ERROR | libc::NLMSG_DONE => {
                        return status(message.payload()).map(|()| consistent);
                    }
                    libc::NLMSG_NOOP => {}
                    _ => each(message.payload()),
                }
            }
        }
    }
}

/// One message; its payload is not padded, as requests' never needs to be.
fn message(kind: u16, flags: u16, sequence: u32, payload: &[u8]) -> Vec<u8> {
    let mut message = vec![0; HEADER + payload.len()];
    message[HEADER..].copy_from_slice(payload);
    let mut header = NetlinkBuffer::new(&mut message);
    header.set_length((HEADER + payload.len()) as u32);
    header.set_message_type(kind);
    header.set_flags(flags);
    header.set_sequence_number(sequence);
    message
}

/// The messages of one datagram.
pub(crate) fn messages(datagram: &[u8]) -> impl Iterator<Item = Result<NetlinkBuffer<&[u8]>, NetlinkError>> {
    let mut rest = datagram;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let message =
            NetlinkBuffer::new_checked(rest).map_err(|_| NetlinkError::Garbled("a message is cut short"));
        let length = message.as_ref().map_or(rest.len(), |message| message.length() as usize);
        rest = rest.get(length.next_multiple_of(ALIGN)..).unwrap_or_default();
        Some(message)
    })
}

/// Calls `each` with every attribute's type and value, up to the first that is malformed.
pub(super) fn attributes(bytes: &[u8], mut each: impl FnMut(u16, &[u8])) {
    for attribute in NlasIterator::new(bytes).map_while(Result::ok) {
        each(attribute.kind(), attribute.value());
    }
}

/// A value as a number in the host's order.
pub(super) fn number(value: &[u8]) -> Option<u32> {
    value.first_chunk().copied().map(u32::from_ne_bytes)
}

/// The errno at the front of `NLMSG_ERROR` and `NLMSG_DONE`: zero or negative.
fn status(payload: &[u8]) -> Result<(), NetlinkError> {
    match payload.first_chunk().copied().map(i32::from_ne_bytes) {
        None | Some(0) => Ok(()),
        Some(errno) => Err(NetlinkError::Refused(io::Error::from_raw_os_error(errno.wrapping_neg()))),
    }
}

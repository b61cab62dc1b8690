//! The kernel's own word that a link works, heard instead of asked for.
//!
//! Whoever asks about a link waits for the lock that all of rtnetlink shares. The kernel holds it while a link that has just
//! come up announces its IPv6 addresses (`addrconf_dad_work`, net/ipv6/addrconf.c), and on a bridge of 500 ports each
//! announcement is copied 500 times meanwhile: 4 ms. What it tells everybody before that needs no lock to be heard.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use netlink_packet_core::NetlinkBuffer;
use netlink_sys::Socket;
use netlink_sys::protocols::NETLINK_ROUTE;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::connection::Answer;
use super::error::NetlinkError;
use super::link::Link;

/// The multicast group of changes to links.
const RTNLGRP_LINK: u32 = 1;
const AF_UNSPEC: u8 = 0;
/// More than one notification takes.
const DATAGRAM: usize = 16 << 10;

/// A socket that hears of every change to a link of one network namespace.
#[derive(Debug)]
pub(crate) struct LinkWatch(Socket);

impl LinkWatch {
    /// Listens in the calling thread's network namespace, from now on.
    ///
    /// # Errors
    /// [`NetlinkError::Socket`].
    pub(crate) fn open() -> Result<Self, NetlinkError> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        // One without a port of its own is taken for the kernel, which is not told what it says.
        socket.bind_auto()?;
        socket.add_membership(RTNLGRP_LINK)?;
        socket.set_non_blocking(true)?;
        Ok(Self(socket))
    }

    /// The link as the kernel tells of it once it can carry packets (RFC 2863, `ifOperStatus` up); none when nothing of the
    /// kind was heard within `patience` or until there is something to be read of `other`, or notifications were lost. Then the kernel has to be asked.
    pub(crate) fn until_operational(
        &self,
        index: u32,
        patience: Duration,
        other: Option<BorrowedFd<'_>>,
    ) -> Option<Link> {
        let deadline = Instant::now() + patience;
        let mut buffer = Vec::with_capacity(DATAGRAM);
        loop {
            buffer.clear();
            match self.0.recv(&mut buffer, 0) {
                Ok(_) => {
                    let told = links(&buffer).into_iter().rfind(|link| link.index == index);
                    if let Some(link) = told.filter(|link| link.operational) {
                        return Some(link);
                    }
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => self.wait(deadline, other)?,
                // ENOBUFS: more happened than the socket holds.
                Err(_) => return None,
            }
        }
    }

    /// Sleeps until there is something to hear; none when the time is over, or there is something of `other` instead.
    fn wait(&self, deadline: Instant, other: Option<BorrowedFd<'_>>) -> Option<()> {
        let left = deadline.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())?;
        let left = PollTimeout::try_from(left.as_millis() + 1).unwrap_or(PollTimeout::MAX);
        let readable = |fd| PollFd::new(fd, PollFlags::POLLIN);
        let mut sources = [readable(self.0.as_fd()), readable(other.unwrap_or(self.0.as_fd()))];
        match poll(&mut sources, left) {
            Ok(_) if sources[0].any() == Some(false) && sources[1].any() == Some(true) => None,
            Ok(_) | Err(Errno::EINTR) => Some(()),
            Err(_) => None,
        }
    }
}

/// The links that one datagram of notifications tells of.
fn links(mut datagram: &[u8]) -> Vec<Link> {
    let mut told = Vec::new();
    while let Ok(message) = NetlinkBuffer::new_checked(datagram) {
        // A bridge tells of its ports apart (`AF_BRIDGE`), and says less of them.
        if message.payload().first() == Some(&AF_UNSPEC) {
            told.push(Answer { kind: message.message_type(), payload: message.payload().to_vec() });
        }
        let length = (message.length() as usize).next_multiple_of(4);
        datagram = datagram.get(length..).unwrap_or_default();
    }
    Link::all(&told)
}

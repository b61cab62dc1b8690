//! The kernel's own word that a link works, heard instead of asked for.
//!
//! Whoever asks about a link waits for the lock that all of rtnetlink shares. The kernel holds it while a link that has just come up
//! announces its IPv6 addresses (`addrconf_dad_work`, net/ipv6/addrconf.c), and on a bridge of 500 ports each announcement is copied 500
//! times meanwhile. What it tells everybody before that needs no lock to be heard.

use std::io;
use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::libc::{RTM_NEWLINK, RTNLGRP_LINK};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::error::NetlinkError;
use crate::link::Link;
use crate::message::messages;
use crate::request::Reply as _;
use crate::socket::Socket;

/// A socket that hears of every change to a link of one network namespace.
#[derive(Debug)]
pub struct LinkWatch(Socket);

impl LinkWatch {
    /// Listens in the calling thread's network namespace, from now on.
    ///
    /// # Errors
    /// [`NetlinkError::Socket`].
    pub fn open() -> Result<Self, NetlinkError> {
        Socket::listen(&[RTNLGRP_LINK as u32], None, |_| Ok(())).map(Self)
    }

    /// The link as the kernel tells of it once it can carry packets (RFC 2863, `ifOperStatus` up); none when nothing of the kind was
    /// heard within `patience`, or notifications were lost. Then the kernel has to be asked.
    pub fn until_operational(&mut self, index: u32, patience: Duration) -> Option<Link> {
        let deadline = Instant::now() + patience;
        loop {
            match self.0.receive() {
                Ok(datagram) => {
                    let told = links(datagram).filter(|link| link.index == index).last();
                    if let Some(link) = told.filter(|link| link.operational) {
                        return Some(link);
                    }
                }
                Err(NetlinkError::Socket(error)) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.wait(deadline)?;
                }
                // ENOBUFS: more happened than the socket holds.
                Err(_) => return None,
            }
        }
    }

    /// Sleeps until there is something to hear; none when the time is over.
    fn wait(&self, deadline: Instant) -> Option<()> {
        let left = deadline.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())?;
        let left = PollTimeout::try_from(left.as_millis() + 1).unwrap_or(PollTimeout::MAX);
        match poll(&mut [PollFd::new(self.0.as_fd(), PollFlags::POLLIN)], left) {
            Ok(_) | Err(Errno::EINTR) => Some(()),
            Err(_) => None,
        }
    }
}

/// The links that one datagram of notifications tells of.
fn links(datagram: &[u8]) -> impl Iterator<Item = Link> {
    messages(datagram)
        .map_while(Result::ok)
        .filter(|message| message.message_type() == RTM_NEWLINK)
        .filter_map(|message| Link::read(message.payload()))
}

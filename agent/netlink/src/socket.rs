//! A netlink socket that hears the kernel and nobody else.
//!
//! Any process with `CAP_NET_ADMIN` in the namespace can send to any netlink socket there. The socket is connected to the kernel
//! (port 0), so the kernel refuses such a datagram at its sender (`netlink_getsockbyportid`, net/netlink/af_netlink.c); multicast
//! is delivered all the same. So the sender of each datagram is checked as well.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use netlink_sys::SocketAddr;
use netlink_sys::protocols::NETLINK_ROUTE;
use nix::libc;
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::{RcvBufForce, ReceiveTimeout, SndBufForce};
use nix::sys::time::TimeVal;

use crate::error::NetlinkError;

/// Bytes of one datagram. The kernel fills at most 32 KiB of a dump's unless one entry needs more (`NLMSG_GOODSIZE`,
/// net/netlink/af_netlink.c).
const DATAGRAM: usize = 64 << 10;

/// How long an answer may take. The kernel answers before `sendmsg` returns, so only a lost answer takes this long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A socket bound to the network namespace in which it was opened, wherever its thread goes.
#[derive(Debug)]
pub struct Socket {
    socket: netlink_sys::Socket,
    buffer: Vec<u8>,
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Socket {
    /// Opens a socket of one protocol (`NETLINK_ROUTE`, `NETLINK_NETFILTER`) in the calling thread's network namespace.
    ///
    /// # Errors
    /// [`NetlinkError::Socket`]: the kernel lacks the protocol.
    pub fn open(protocol: i32) -> Result<Self, NetlinkError> {
        let socket = netlink_sys::Socket::new(protocol as isize)?;
        socket.connect(&SocketAddr::new(0, 0))?;
        // The kernel quotes no request, and says in words what it dislikes.
        socket.set_cap_ack(true)?;
        socket.set_ext_ack(true)?;
        if protocol as isize == NETLINK_ROUTE {
            // The kernel honours the filters of a dump (since Linux 4.20); an older one sends everything.
            let _ = socket.set_netlink_get_strict_chk(true);
        }
        let opened = Self { socket, buffer: Vec::with_capacity(DATAGRAM) };
        opened.set_patience(PATIENCE)?;
        Ok(opened)
    }

    /// How long an answer may take from now on; a whole number of seconds.
    pub(crate) fn set_patience(&self, patience: Duration) -> Result<(), NetlinkError> {
        let patience = TimeVal::new(patience.as_secs() as _, 0);
        Ok(setsockopt(&self.socket, ReceiveTimeout, &patience).map_err(io::Error::from)?)
    }

    /// Opens a socket of one protocol that hears these multicast groups (`RTNLGRP_LINK`, linux/rtnetlink.h) from now on. `prepare` comes
    /// before the first message can.
    ///
    /// # Errors
    /// [`NetlinkError::Socket`].
    pub fn listen(
        protocol: i32,
        groups: &[u32],
        backlog: Option<usize>,
        prepare: impl FnOnce(&netlink_sys::Socket) -> io::Result<()>,
    ) -> Result<Self, NetlinkError> {
        let socket = netlink_sys::Socket::new(protocol as isize)?;
        prepare(&socket)?;
        if let Some(backlog) = backlog {
            setsockopt(&socket, RcvBufForce, &backlog).map_err(io::Error::from)?;
        }
        socket.connect(&SocketAddr::new(0, 0))?;
        socket.set_non_blocking(true)?;
        for group in groups {
            socket.add_membership(*group)?;
        }
        Ok(Self { socket, buffer: Vec::with_capacity(DATAGRAM) })
    }

    /// Sends messages to the kernel in one datagram, which it works through before this returns.
    ///
    /// # Errors
    /// [`NetlinkError::Socket`].
    pub fn send(&self, messages: &[u8]) -> Result<(), NetlinkError> {
        crate::failpoint::pass()?;
        // A datagram that is larger than the socket's room is refused (`netlink_sendmsg`).
        if messages.len() > DATAGRAM {
            setsockopt(&self.socket, SndBufForce, &messages.len()).map_err(io::Error::from)?;
        }
        self.socket.send(messages, 0)?;
        Ok(())
    }

    /// Waits for the kernel's next datagram; those of others are thrown away.
    ///
    /// # Errors
    /// [`NetlinkError::Truncated`], or [`NetlinkError::Socket`]: `EAGAIN` where nothing came in time, `ENOBUFS` where datagrams
    /// were lost.
    pub fn receive(&mut self) -> Result<&[u8], NetlinkError> {
        loop {
            self.buffer.clear();
            match self.socket.recv_from(&mut self.buffer, libc::MSG_TRUNC) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
                Ok((_, sender)) if sender.port_number() != 0 => {}
                Ok((length, _)) if length > self.buffer.len() => {
                    return Err(NetlinkError::Truncated { length });
                }
                Ok(_) => break,
            }
        }
        Ok(&self.buffer)
    }

    /// The address at which others reach it.
    #[cfg(test)]
    pub(crate) fn port(&self) -> u32 {
        let mut own = SocketAddr::new(0, 0);
        self.socket.get_address(&mut own).map_or(0, |()| own.port_number())
    }

    /// The same with a smaller buffer.
    #[cfg(test)]
    pub(crate) fn with_room(self, bytes: usize) -> Self {
        Self { buffer: Vec::with_capacity(bytes), ..self }
    }
}

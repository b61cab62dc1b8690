//! Changes of links, of their addresses, of what others put onto them, and of what bridges were told of stations, as the kernel
//! tells them to everybody (`RTNLGRP_LINK`, `RTNLGRP_IPV4_IFADDR`, `RTNLGRP_IPV6_IFADDR`, `RTNLGRP_TC`, `RTNLGRP_NEIGH`).

use std::os::fd::AsFd as _;
use std::time::Duration;
use std::{io, thread};

use netlink_sys::{Socket, SocketAddr};
use nix::errno::Errno;
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::RcvBufForce;
use tokio::sync::mpsc;

use super::address::{self, InterfaceAddress};
use super::link::{self, Link};
use super::station::{self, Placement};
use super::{filter, quiet, socket, traffic_control};
use crate::bpf::clsact;

/// Bytes that may wait in the kernel. A churn of 1,000 containers at once says some 4 MB.
const BACKLOG: usize = 8 << 20;

/// Bytes of one datagram; a multicast message never has more than one page's worth.
const DATAGRAM: usize = 32 << 10;

/// How long changes are gathered after the first: longer than most of an ADD, and no time for whoever looks after them.
const GATHERING: Duration = Duration::from_millis(3);

/// Changes that are told at a time, about.
const MOST: usize = 4096;

/// What has happened to links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkEvent {
    /// A link is new or has changed.
    Changed(Link),
    /// A link is gone from this namespace.
    Gone(Link),
    /// Somebody else's filter or queueing discipline on this interface came or changed, or any went.
    Shaped(u32),
    /// An interface has got an address.
    Addressed(InterfaceAddress),
    /// An interface has lost an address.
    Unaddressed(InterfaceAddress),
    /// A bridge was told what kind of port this is.
    Told(u32),
    /// A bridge was told, or is told no more, where a station is.
    Stationed(Placement),
    /// The kernel dropped messages (`ENOBUFS`): ask for everything again.
    Missed,
}

/// Hears of link changes of the network namespace that it was opened in.
///
/// A thread of its own listens, and sleeps for [`GATHERING`] from the first change on: each ADD makes half a dozen, and the kernel
/// would stop the plugin at each of them to run whoever waits for it, on the plugin's own processor.
#[derive(Debug)]
pub struct Monitor {
    changes: mpsc::Receiver<io::Result<Vec<LinkEvent>>>,
}

impl Monitor {
    /// Subscribes.
    ///
    /// # Errors
    /// The kernel's.
    pub fn open() -> io::Result<Self> {
        let mut socket = Socket::new(libc::NETLINK_ROUTE as isize)?;
        let links = libc::RTMGRP_LINK | libc::RTMGRP_TC | libc::RTMGRP_NEIGH;
        let groups = links | libc::RTMGRP_IPV4_IFADDR | libc::RTMGRP_IPV6_IFADDR;
        quiet::keep_out_learned_stations(&socket)?;
        socket.bind(&SocketAddr::new(0, groups as u32))?;
        setsockopt(&socket, RcvBufForce, &BACKLOG)?;
        let (told, changes) = mpsc::channel(1);
        thread::Builder::new().name("monitor".into()).spawn(move || listen(&socket, &told))?;
        Ok(Self { changes })
    }

    /// Waits for the next changes. Cancelling it loses nothing.
    ///
    /// # Errors
    /// The kernel's, other than that it dropped messages.
    pub async fn next(&mut self) -> io::Result<Vec<LinkEvent>> {
        self.changes.recv().await.unwrap_or_else(|| Err(io::ErrorKind::BrokenPipe.into()))
    }
}

/// Tells what the socket hears until it fails, or nobody listens any more.
fn listen(socket: &Socket, told: &mpsc::Sender<io::Result<Vec<LinkEvent>>>) {
    let mut buffer = Vec::with_capacity(DATAGRAM);
    loop {
        let heard = gather(socket, &mut buffer);
        let is_over = heard.is_err();
        if told.blocking_send(heard).is_err() || is_over {
            return;
        }
    }
}

/// Waits for a change and a moment more; what has been told by then.
fn gather(socket: &Socket, buffer: &mut Vec<u8>) -> io::Result<Vec<LinkEvent>> {
    match poll(&mut [PollFd::new(socket.as_fd(), PollFlags::POLLIN)], PollTimeout::NONE) {
        Ok(_) | Err(Errno::EINTR) => thread::sleep(GATHERING),
        Err(errno) => return Err(errno.into()),
    }
    let mut heard = Vec::new();
    while heard.len() < MOST {
        buffer.clear();
        match socket.recv(buffer, libc::MSG_DONTWAIT) {
            Ok(_) => heard.extend(events(buffer)),
            Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => heard.push(LinkEvent::Missed),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(heard)
}

/// The changes that one datagram tells; one that cannot be read counts as missed.
fn events(datagram: &[u8]) -> Vec<LinkEvent> {
    socket::messages(datagram)
        .filter_map(|message| {
            let Ok(message) = message else { return Some(LinkEvent::Missed) };
            match message.message_type() {
                libc::RTM_NEWLINK => link::parse(message.payload())
                    .map(LinkEvent::Changed)
                    .or_else(|| link::parse_port(message.payload()).map(LinkEvent::Told)),
                libc::RTM_DELLINK => link::parse(message.payload()).map(LinkEvent::Gone),
                libc::RTM_NEWADDR => address::parse(message.payload()).map(LinkEvent::Addressed),
                libc::RTM_DELADDR => address::parse(message.payload()).map(LinkEvent::Unaddressed),
                libc::RTM_NEWNEIGH | libc::RTM_DELNEIGH => {
                    station::parse(message.payload()).map(LinkEvent::Stationed)
                }
                kind => shaped(kind, message.payload()).map(LinkEvent::Shaped),
            }
        })
        .collect()
}

/// The interface on which something came that is not ours, or went that may be. Our own filters say nothing as they come,
/// nor does the clsact that comes with them.
fn shaped(kind: u16, payload: &[u8]) -> Option<u32> {
    let (head, attributes) = traffic_control::split(payload)?;
    let is_theirs = match kind {
        libc::RTM_NEWTFILTER => !clsact::is_ours(&filter::parse(payload)?),
        libc::RTM_DELTFILTER | libc::RTM_DELQDISC => true,
        libc::RTM_NEWQDISC => {
            let mut is_clsact = false;
            socket::attributes(attributes, |attribute, value| {
                is_clsact |= attribute == traffic_control::TCA_KIND && value == b"clsact\0";
            });
            !is_clsact
        }
        _ => false,
    };
    is_theirs.then_some(head.ifindex)
}

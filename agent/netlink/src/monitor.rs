//! Changes of links, of their addresses, of what others put onto them, and of what bridges were told of stations, as the kernel tells
//! them to everybody.

use std::os::fd::AsFd as _;
use std::time::Duration;
use std::{io, thread};

use nix::errno::Errno;
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::address::Address;
use crate::bridge::read_port;
use crate::error::NetlinkError;
use crate::fdb::FdbEntry;
use crate::link::Link;
use crate::message::messages;
use crate::request::Reply as _;
use crate::socket::Socket;
use crate::socket_filter::keep_out_learned_stations;
use crate::tc::{Filter, TrafficControl};

/// Bytes that may wait in the kernel. A churn of 1,000 containers at once says some 4 MB.
const BACKLOG: usize = 8 << 20;

/// How long changes are gathered after the first: longer than most of an ADD, and no time for whoever looks after them.
const GATHERING: Duration = Duration::from_millis(3);

/// Changes that are told at a time, about.
const MOST: usize = 4096;

const GROUPS: [i32; 5] = [
    libc::RTNLGRP_LINK as i32,
    libc::RTNLGRP_TC as i32,
    libc::RTNLGRP_NEIGH as i32,
    libc::RTNLGRP_IPV4_IFADDR as i32,
    libc::RTNLGRP_IPV6_IFADDR as i32,
];

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
    Addressed(Address),
    /// An interface has lost an address.
    Unaddressed(Address),
    /// A bridge was told what kind of port this is.
    Told(u32),
    /// A bridge was told, or is told no more, where a station is.
    Stationed(FdbEntry),
    /// The kernel dropped messages (`ENOBUFS`), or one cannot be read: ask for everything again.
    Missed,
}

/// Hears of changes in the network namespace that it was opened in.
#[derive(Debug)]
pub struct LinkMonitor {
    socket: Socket,
    is_ours: fn(&Filter) -> bool,
}

impl LinkMonitor {
    /// Subscribes. A filter that `is_ours` says nothing as it comes.
    ///
    /// # Errors
    /// [`NetlinkError::Socket`].
    pub fn open(is_ours: fn(&Filter) -> bool) -> Result<Self, NetlinkError> {
        let groups = GROUPS.map(|group| group as u32);
        let socket = Socket::listen(libc::NETLINK_ROUTE, &groups, Some(BACKLOG), keep_out_learned_stations)?;
        Ok(Self { socket, is_ours })
    }

    /// Waits for a change and a moment more; what has been told by then.
    ///
    /// # Errors
    /// The kernel's, other than that it dropped messages.
    pub fn gather(&mut self) -> io::Result<Vec<LinkEvent>> {
        match poll(&mut [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)], PollTimeout::NONE) {
            Ok(_) | Err(Errno::EINTR) => thread::sleep(GATHERING),
            Err(errno) => return Err(errno.into()),
        }
        let mut heard = Vec::new();
        while heard.len() < MOST {
            match self.socket.receive() {
                Ok(datagram) => heard.extend(events(datagram, self.is_ours)),
                Err(NetlinkError::Socket(error)) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(NetlinkError::Socket(error)) if error.raw_os_error() != Some(libc::ENOBUFS) => {
                    return Err(error);
                }
                Err(_) => heard.push(LinkEvent::Missed),
            }
        }
        Ok(heard)
    }
}

/// The changes that one datagram tells; one that cannot be read counts as missed.
fn events(datagram: &[u8], is_ours: fn(&Filter) -> bool) -> impl Iterator<Item = LinkEvent> {
    messages(datagram).filter_map(move |message| {
        let Ok(message) = message else { return Some(LinkEvent::Missed) };
        let payload = message.payload();
        match message.message_type() {
            libc::RTM_NEWLINK => Link::read(payload)
                .map(LinkEvent::Changed)
                .or_else(|| read_port(payload).map(LinkEvent::Told)),
            libc::RTM_DELLINK => Link::read(payload).map(LinkEvent::Gone),
            libc::RTM_NEWADDR => reachable(payload).map(LinkEvent::Addressed),
            libc::RTM_DELADDR => reachable(payload).map(LinkEvent::Unaddressed),
            libc::RTM_NEWNEIGH | libc::RTM_DELNEIGH => FdbEntry::read(payload).map(LinkEvent::Stationed),
            kind => shaped(kind, payload, is_ours).map(LinkEvent::Shaped),
        }
    })
}

fn reachable(payload: &[u8]) -> Option<Address> {
    Address::read(payload).filter(Address::is_reachable)
}

/// The interface on which something came that is not ours, or went that may be. Our own filters say nothing as they come, nor does the
/// clsact that comes with them.
fn shaped(kind: u16, payload: &[u8], is_ours: fn(&Filter) -> bool) -> Option<u32> {
    let entry = TrafficControl::read(payload)?;
    let is_theirs = match kind {
        libc::RTM_NEWTFILTER => !is_ours(&Filter::read(payload)?),
        libc::RTM_DELTFILTER | libc::RTM_DELQDISC => true,
        libc::RTM_NEWQDISC => entry.kind != "clsact",
        _ => false,
    };
    is_theirs.then_some(entry.index)
}

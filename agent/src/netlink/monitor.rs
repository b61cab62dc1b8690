//! Changes of links, of their addresses, of what others put onto them, and of what bridges were told of stations, as the kernel
//! tells them to everybody (`RTNLGRP_LINK`, `RTNLGRP_IPV4_IFADDR`, `RTNLGRP_IPV6_IFADDR`, `RTNLGRP_TC`, `RTNLGRP_NEIGH`).

use std::io;

use netlink_sys::{AsyncSocket as _, AsyncSocketExt as _, SocketAddr, TokioSocket};
use nix::libc;
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::RcvBufForce;

use super::address::{self, InterfaceAddress};
use super::link::{self, Link};
use super::station::{self, Placement};
use super::{filter, quiet, socket, traffic_control};
use crate::bpf::clsact;

/// Bytes that may wait in the kernel. A churn of 1,000 containers at once says some 4 MB.
const BACKLOG: usize = 8 << 20;

/// Bytes of one datagram; a multicast message never has more than one page's worth.
const DATAGRAM: usize = 32 << 10;

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

/// Listens to link changes of the network namespace that it was opened in.
pub struct Monitor {
    socket: TokioSocket,
    buffer: Vec<u8>,
}

impl Monitor {
    /// Subscribes. Needs a Tokio runtime.
    ///
    /// # Errors
    /// The kernel's.
    pub fn open() -> io::Result<Self> {
        let mut socket = TokioSocket::new(libc::NETLINK_ROUTE as isize)?;
        let links = libc::RTMGRP_LINK | libc::RTMGRP_TC | libc::RTMGRP_NEIGH;
        let groups = links | libc::RTMGRP_IPV4_IFADDR | libc::RTMGRP_IPV6_IFADDR;
        quiet::keep_out_learned_stations(socket.socket_ref())?;
        socket.socket_mut().bind(&SocketAddr::new(0, groups as u32))?;
        setsockopt(socket.socket_ref(), RcvBufForce, &BACKLOG)?;
        Ok(Self { socket, buffer: Vec::with_capacity(DATAGRAM) })
    }

    /// Waits for the next changes. Cancelling it loses nothing.
    ///
    /// # Errors
    /// The kernel's, other than that it dropped messages.
    pub async fn next(&mut self) -> io::Result<Vec<LinkEvent>> {
        loop {
            self.buffer.clear();
            match self.socket.recv(&mut self.buffer).await {
                Ok(()) => return Ok(events(&self.buffer)),
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {
                    return Ok(vec![LinkEvent::Missed]);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
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

//! Connects UDP sockets of the node's processes anew, as their owners would have to: a datagram goes to the container that has the host port now, or is
//! refused by the node. Where an owner's socket cannot be had (the process is in another namespace of processes, or `ptrace` is forbidden), it is aborted:
//! its owner is told once, and it has no peer until the owner connects it.

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::{io, thread};

use rustix::io::Errno;
use rustix::net::{SocketAddrAny, connect, connect_unspec, getpeername, getsockname};
use shunt_netlink::sock_diag::{InetSocket, SocketDiagnosis};

use super::held_sockets::find_held_sockets;

/// A socket whose peer has changed.
#[derive(Debug)]
pub(super) struct Stale {
    pub(super) socket: InetSocket,
    /// The address of the node that its owner connected it to.
    pub(super) asked: SocketAddr,
}

/// Does so beside the agent's thread, for there may be many processes: one thread, which takes together what has come meanwhile.
#[derive(Debug, Default)]
pub(super) struct Reconnector(Option<Sender<Vec<Stale>>>);

impl Reconnector {
    pub(super) fn reconnect(&mut self, stale: Vec<Stale>) {
        if stale.is_empty() {
            return;
        }
        match self.sender() {
            // It ends with the agent alone.
            Ok(sender) => drop(sender.send(stale)),
            Err(error) => {
                tracing::warn!(%error, "cannot connect UDP sockets anew: they bypass host ports");
            }
        }
    }

    /// To the thread, which begins in the network namespace of this one.
    fn sender(&mut self) -> io::Result<&Sender<Vec<Stale>>> {
        let sender = match self.0.take() {
            Some(sender) => sender,
            None => {
                let (sender, orders) = channel();
                thread::Builder::new().name("reconnect".into()).spawn(move || work(&orders))?;
                sender
            }
        };
        Ok(self.0.insert(sender))
    }
}

fn work(orders: &Receiver<Vec<Stale>>) {
    while let Ok(first) = orders.recv() {
        let all: HashMap<_, _> =
            first.into_iter().chain(orders.try_iter().flatten()).map(|it| (it.socket.cookie(), it)).collect();
        let count = all.len();
        let left = reconnect_held(all);
        let reconnected = count - left.len();
        let aborted = abort(&left);
        tracing::info!(reconnected, aborted, "connected UDP sockets anew whose host port has another target");
    }
}

/// Returns those that cannot be had. Each descriptor is closed at once, for an owner that closes a socket wants its port free.
fn reconnect_held(mut left: HashMap<u64, Stale>) -> Vec<Stale> {
    let inodes: HashSet<_> = left.values().map(|it| it.socket.inode()).collect();
    find_held_sockets(&inodes, |cookie, descriptor| {
        if let Some(socket) = left.get(&cookie) {
            match connect_anew(&descriptor, socket) {
                Ok(()) => drop(left.remove(&cookie)),
                Err(error) => {
                    tracing::warn!(%error, asked = %socket.asked, "cannot connect a UDP socket anew");
                }
            }
        }
        !left.is_empty()
    });
    left.into_values().collect()
}

/// Connects it to whom it asked for, unless its owner has connected it to somebody else, or has disconnected it. The programs on sockets say who that is now, for
/// they are the socket's, whoever calls; where there are none any more, `getpeername` says where it was led.
fn connect_anew(descriptor: &OwnedFd, Stale { socket, asked }: &Stale) -> io::Result<()> {
    let peer = match getpeername(descriptor) {
        Ok(Some(peer)) => SocketAddr::try_from(peer)?,
        Ok(None) | Err(Errno::NOTCONN) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    let known = SocketAddr::new(peer.ip().to_canonical(), peer.port());
    if known == *asked {
        // With its scope.
        return connect_released(descriptor, peer);
    }
    if known == socket.remote() { connect_released(descriptor, like(*asked, peer)) } else { Ok(()) }
}

/// Who talked to the node by the loopback has a source address there, with which nothing leaves the node, and keeps it until it is disconnected. Its
/// port is another one then, unless its owner has chosen it.
fn connect_released(descriptor: impl AsFd, peer: SocketAddr) -> io::Result<()> {
    let own = SocketAddr::try_from(getsockname(&descriptor)?)?;
    if own.ip().to_canonical().is_loopback() {
        connect_unspec(&descriptor)?;
    }
    Ok(connect(descriptor, &SocketAddrAny::from(peer))?)
}

/// An address as a socket with such a peer takes it.
fn like(address: SocketAddr, peer: SocketAddr) -> SocketAddr {
    match (address.ip(), peer) {
        (IpAddr::V4(ip), SocketAddr::V6(_)) => SocketAddr::new(ip.to_ipv6_mapped().into(), address.port()),
        _ => address,
    }
}

/// How many were aborted. One that is connected to somebody else by now is left alone.
fn abort(sockets: &[Stale]) -> usize {
    if sockets.is_empty() {
        return 0;
    }
    let mut diagnosis = match SocketDiagnosis::open() {
        Ok(diagnosis) => diagnosis,
        Err(error) => {
            tracing::warn!(%error, sockets = sockets.len(), "UDP sockets bypass host ports: they cannot be aborted");
            return 0;
        }
    };
    let is_aborted = |Stale { socket, asked }: &&Stale| {
        let done = diagnosis.abort(socket);
        if let Err(error) = &done {
            tracing::warn!(%error, %asked, "a UDP socket bypasses a host port: it cannot be aborted");
        }
        done.is_ok()
    };
    sockets.iter().filter(is_aborted).count()
}

//! The sockets of this namespace that listen, and the UDP sockets that are connected, with their abortion (linux/inet_diag.h).

use std::net::SocketAddr;

use netlink_packet_core::{NLM_F_DUMP, Parseable as _};
use netlink_packet_sock_diag::constants::{
    AF_INET, AF_INET6, IPPROTO_TCP, IPPROTO_UDP, SOCK_DESTROY, SOCK_DIAG_BY_FAMILY,
};
use netlink_packet_sock_diag::inet::{ExtensionFlags, InetRequest, InetResponseHeader, SocketId, StateFlags};
use netlink_sys::protocols::NETLINK_SOCK_DIAG;

use crate::attribute::emitted;
use crate::connection::Connection;
use crate::error::{NetlinkError, unless};
use crate::request::{Reply, Request};

/// A TCP or UDP socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InetSocket {
    family: u8,
    protocol: u8,
    /// Ports, addresses, interface and cookie, by which the kernel finds it again.
    id: SocketId,
    inode: u32,
}

impl InetSocket {
    /// Where it listens; an unspecified address: at every one.
    pub fn local(&self) -> SocketAddr {
        SocketAddr::new(self.id.source_address, self.id.source_port)
    }

    /// To whom it is connected; an IPv4 address that an IPv6 socket talks to is told as one.
    pub fn remote(&self) -> SocketAddr {
        SocketAddr::new(self.id.destination_address.to_canonical(), self.id.destination_port)
    }

    /// The number in `/proc/PID/fd`, where a process's descriptor of it is a link to `socket:[NUMBER]`.
    pub fn inode(&self) -> u32 {
        self.inode
    }

    /// The socket's cookie, which is never used again (`sock_diag_save_cookie`: the lower word first).
    pub fn cookie(&self) -> u64 {
        let [a, b, c, d, e, f, g, h] = self.id.cookie;
        let [low, high] = [[a, b, c, d], [e, f, g, h]].map(u32::from_ne_bytes);
        u64::from(high) << 32 | u64::from(low)
    }
}

impl Reply for InetSocket {
    fn read(payload: &[u8]) -> Option<Self> {
        let InetResponseHeader { family, socket_id, inode, .. } = InetResponseHeader::parse(payload).ok()?;
        let is_ip = matches!(family, AF_INET | AF_INET6);
        is_ip.then_some(Self { family, protocol: IPPROTO_UDP, id: socket_id, inode })
    }
}

fn asked(family: u8, protocol: u8, states: StateFlags, socket_id: SocketId) -> Vec<u8> {
    emitted(&InetRequest { family, protocol, extensions: ExtensionFlags::empty(), states, socket_id })
}

/// A socket for these requests.
#[derive(Debug)]
pub struct SocketDiagnosis(Connection);

impl SocketDiagnosis {
    /// Opens it.
    ///
    /// # Errors
    /// The kernel has no sock_diag.
    pub fn open() -> Result<Self, NetlinkError> {
        Connection::of(NETLINK_SOCK_DIAG as i32).map(Self)
    }

    fn sockets(&mut self, protocol: u8, states: &StateFlags) -> Result<Vec<InetSocket>, NetlinkError> {
        let mut found = Vec::new();
        for (family, any) in [(AF_INET, SocketId::new_v4()), (AF_INET6, SocketId::new_v6())] {
            let payload = asked(family, protocol, states.clone(), any);
            found.extend(self.0.list(Request::raw(
                "list sockets",
                SOCK_DIAG_BY_FAMILY,
                NLM_F_DUMP,
                payload,
            ))?);
        }
        // The answer does not say it.
        found.iter_mut().for_each(|socket: &mut InetSocket| socket.protocol = protocol);
        Ok(found)
    }

    /// Every socket of a protocol that waits for others: TCP's state `LISTEN`, and UDP's only one that has no peer, `CLOSE`. One
    /// state more of TCP's has the kernel walk all its connections, those that wait for stray packets (`TIME_WAIT`) too.
    fn listeners(&mut self, protocol: u8) -> Result<Vec<InetSocket>, NetlinkError> {
        let states = if protocol == IPPROTO_TCP { StateFlags::LISTEN } else { StateFlags::CLOSE };
        self.sockets(protocol, &states)
    }

    /// Every connected UDP socket: `ESTABLISHED` is UDP's state for it, too.
    pub fn connected_udp(&mut self) -> Result<Vec<InetSocket>, NetlinkError> {
        self.sockets(IPPROTO_UDP, &StateFlags::ESTABLISHED)
    }

    /// Every TCP socket that is connected, or is about to be.
    pub fn connected_tcp(&mut self) -> Result<Vec<InetSocket>, NetlinkError> {
        self.sockets(IPPROTO_TCP, &(StateFlags::ESTABLISHED | StateFlags::SYN_SENT | StateFlags::CLOSE_WAIT))
    }

    /// Disconnects a socket and tells its owner so (`ECONNABORTED`). One that is closed meanwhile, or is another's by now, is left
    /// alone.
    ///
    /// # Errors
    /// `EOPNOTSUPP`: the kernel is built without `CONFIG_INET_DIAG_DESTROY`.
    pub fn abort(&mut self, socket: &InetSocket) -> Result<(), NetlinkError> {
        let payload = asked(socket.family, socket.protocol, StateFlags::ESTABLISHED, socket.id.clone());
        unless(self.0.run(Request::raw("abort a socket", SOCK_DESTROY, 0, payload)), NetlinkError::is_missing)
    }
}

/// Where sockets of a protocol listen; an unspecified address: at every one.
///
/// # Errors
/// The kernel has no sock_diag, or every kind of [`NetlinkError`].
pub fn listeners(protocol: u8) -> Result<Vec<SocketAddr>, NetlinkError> {
    Ok(SocketDiagnosis::open()?.listeners(protocol)?.iter().map(InetSocket::local).collect())
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, TcpListener, TcpStream, UdpSocket};
    use std::thread::sleep;
    use std::time::{Duration, Instant};

    use nix::libc;
    use nix::sys::socket::{getsockopt, sockopt::SocketError};

    use super::*;

    fn connected_to(to: SocketAddr) -> Vec<InetSocket> {
        let sockets = SocketDiagnosis::open().unwrap().connected_udp().unwrap();
        sockets.into_iter().filter(|socket| socket.remote() == to).collect()
    }

    /// The addresses at one port.
    fn at_port(protocol: u8, port: u16) -> Vec<IpAddr> {
        listeners(protocol).unwrap().into_iter().filter(|at| at.port() == port).map(|at| at.ip()).collect()
    }

    #[test]
    fn who_listens_is_found_and_who_only_connects_is_not() {
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = tcp.local_addr().unwrap();
        assert_eq!(at_port(IPPROTO_TCP, at.port()), [at.ip()]);
        let client = TcpStream::connect(at).unwrap();
        assert!(at_port(IPPROTO_TCP, client.local_addr().unwrap().port()).is_empty());
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        let at = udp.local_addr().unwrap();
        assert_eq!(at_port(IPPROTO_UDP, at.port()), [at.ip()]);
    }

    #[test]
    fn a_connected_socket_is_found_by_its_peer_and_an_unconnected_one_is_not() {
        for own in ["127.0.0.1:0", "[::1]:0"] {
            let server = UdpSocket::bind(own).unwrap();
            let at = server.local_addr().unwrap();
            let client = UdpSocket::bind((at.ip(), 0)).unwrap();
            // Somebody else's on this machine may still be connected to who had the server's port before.
            let own = client.local_addr().unwrap().port();
            let found = || connected_to(at).iter().filter(|socket| socket.local().port() == own).count();
            assert_eq!(found(), 0);
            client.connect(at).unwrap();
            assert_eq!(found(), 1);
            drop(client);
            // A program that another test starts has the socket, too, until it is begun.
            let begun = Instant::now();
            while found() != 0 {
                assert!(begun.elapsed() < Duration::from_secs(5), "it is found after it was closed");
                sleep(Duration::from_millis(5));
            }
        }
    }

    #[test]
    fn the_aborted_socket_is_told_so_and_its_neighbour_goes_on() {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let at = server.local_addr().unwrap();
        let [one, other] = [(); 2].map(|()| {
            let client = UdpSocket::bind("[::]:0").unwrap();
            client.connect(("::ffff:127.0.0.1", at.port())).unwrap();
            client
        });
        let own = one.local_addr().unwrap().port();
        let all = connected_to(at);
        assert_eq!(all.len(), 2, "an IPv6 socket's IPv4 peer");
        let mine = all.iter().find(|socket| socket.local().port() == own).unwrap();
        let mut sockets = SocketDiagnosis::open().unwrap();
        sockets.abort(mine).unwrap();
        assert_eq!(getsockopt(&one, SocketError).unwrap(), libc::ECONNABORTED);
        assert!(one.send(b"x").is_err(), "it has no peer any more");
        other.send(b"x").unwrap();
        // It has connected anew, so it is not the one that was found.
        one.connect(at).unwrap();
        one.send(b"x").unwrap();
    }

    #[test]
    fn a_message_cut_anywhere_is_skipped_without_a_panic() {
        let mut message = [0; 72];
        (message[0], message[6], message[7]) = (AF_INET, 0x1f, 0x90);
        message[24..28].copy_from_slice(&[10, 0, 0, 2]);
        message[44..52].copy_from_slice(&7u64.to_ne_bytes());
        let socket = InetSocket::read(&message).unwrap();
        assert_eq!((socket.remote(), socket.cookie()), ("10.0.0.2:8080".parse().unwrap(), 7));
        assert!((0..72).all(|length| InetSocket::read(&message[..length]).is_none()));
    }
}

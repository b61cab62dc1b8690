//! The UDP sockets of this namespace that are connected, and their abortion (linux/inet_diag.h).

use std::net::{IpAddr, SocketAddr};

use nix::libc;

use super::socket::{NetlinkError, RequestSocket};

/// `NETLINK_SOCK_DIAG` and its requests `SOCK_DIAG_BY_FAMILY` and `SOCK_DESTROY`.
const SOCK_DIAG: i32 = 4;
const BY_FAMILY: u16 = 20;
const DESTROY: u16 = 21;

/// The state that a connected socket is in, UDP's too, as a bit: `ESTABLISHED`.
const ESTABLISHED: u32 = 1 << 1;

/// Bytes of what precedes `struct inet_diag_sockid` in a request, and of that itself.
const REQUEST_HEAD: usize = 8;
const ID: usize = 48;

/// Where the id stands in `struct inet_diag_msg`.
const ID_AT: usize = 4;

/// A connected UDP socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connected {
    /// To whom; an IPv4 address that an IPv6 socket talks to is told as one.
    pub remote: SocketAddr,
    /// The socket's cookie, which is never used again.
    pub cookie: u64,
    family: u8,
    /// `struct inet_diag_sockid`: ports, addresses, interface and cookie, by which the kernel finds it again.
    id: [u8; ID],
}

/// A socket for these requests.
#[derive(Debug)]
pub struct Sockets(RequestSocket);

impl Sockets {
    /// Opens it.
    ///
    /// # Errors
    /// The kernel has no sock_diag.
    pub fn open() -> Result<Self, NetlinkError> {
        RequestSocket::open(SOCK_DIAG).map(Self)
    }

    /// Every connected UDP socket.
    ///
    /// # Errors
    /// Netlink's.
    pub fn udp(&mut self) -> Result<Vec<Connected>, NetlinkError> {
        let mut found = Vec::new();
        for family in [libc::AF_INET, libc::AF_INET6] {
            let request = request(family as u8, &[0; ID]);
            found.extend(self.0.dump(BY_FAMILY, &request, parse)?);
        }
        Ok(found)
    }

    /// Disconnects it and tells its owner so (`ECONNABORTED`). One that is closed meanwhile, or is another's by now, is
    /// left alone.
    ///
    /// # Errors
    /// Netlink's; `EOPNOTSUPP`: the kernel is built without `CONFIG_INET_DIAG_DESTROY`.
    pub fn abort(&mut self, socket: &Connected) -> Result<(), NetlinkError> {
        match self.0.get(DESTROY, &request(socket.family, &socket.id), |_| {}) {
            Err(error) if error.is_absent() => Ok(()),
            other => other,
        }
    }
}

fn request(family: u8, id: &[u8; ID]) -> [u8; REQUEST_HEAD + ID] {
    let mut request = [0; REQUEST_HEAD + ID];
    (request[0], request[1]) = (family, libc::IPPROTO_UDP as u8);
    request[4..REQUEST_HEAD].copy_from_slice(&ESTABLISHED.to_ne_bytes());
    request[REQUEST_HEAD..].copy_from_slice(id);
    request
}

fn parse(message: &[u8]) -> Option<Connected> {
    let family = *message.first()?;
    let id: [u8; ID] = *message.get(ID_AT..)?.first_chunk()?;
    let port = u16::from_be_bytes([id[2], id[3]]);
    let ip: IpAddr = match i32::from(family) {
        libc::AF_INET => (*id[20..].first_chunk::<4>()?).into(),
        libc::AF_INET6 => (*id[20..].first_chunk::<16>()?).into(),
        _ => return None,
    };
    let [low, high] = [40, 44].map(|at| u32::from_ne_bytes([id[at], id[at + 1], id[at + 2], id[at + 3]]));
    let cookie = u64::from(high) << 32 | u64::from(low);
    Some(Connected { remote: SocketAddr::new(ip.to_canonical(), port), cookie, family, id })
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use nix::sys::socket::{getsockopt, sockopt::SocketError};

    use super::*;

    fn found(to: SocketAddr) -> Vec<Connected> {
        Sockets::open().unwrap().udp().unwrap().into_iter().filter(|socket| socket.remote == to).collect()
    }

    #[test]
    fn a_connected_socket_is_found_by_its_peer_and_an_unconnected_one_is_not() {
        for own in ["127.0.0.1:0", "[::1]:0"] {
            let server = UdpSocket::bind(own).unwrap();
            let at = server.local_addr().unwrap();
            let client = UdpSocket::bind((at.ip(), 0)).unwrap();
            assert_eq!(found(at), []);
            client.connect(at).unwrap();
            assert_eq!(found(at).len(), 1);
            drop(client);
            assert_eq!(found(at), []);
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
        let all = found(at);
        assert_eq!(all.len(), 2, "an IPv6 socket's IPv4 peer");
        let mine = all.iter().find(|socket| u16::from_be_bytes([socket.id[0], socket.id[1]]) == own).unwrap();
        let mut sockets = Sockets::open().unwrap();
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
        (message[0], message[6], message[7]) = (libc::AF_INET as u8, 0x1f, 0x90);
        message[24..28].copy_from_slice(&[10, 0, 0, 2]);
        message[44..52].copy_from_slice(&7u64.to_ne_bytes());
        let socket = parse(&message).unwrap();
        assert_eq!((socket.remote, socket.cookie), ("10.0.0.2:8080".parse().unwrap(), 7));
        assert!((0..52).all(|length| parse(&message[..length]).is_none()));
    }
}

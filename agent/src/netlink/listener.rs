//! The sockets of this namespace that listen (linux/inet_diag.h).

use std::net::{IpAddr, SocketAddr};

use nix::libc;

use super::socket::{NetlinkError, RequestSocket};

/// `NETLINK_SOCK_DIAG` and its request `SOCK_DIAG_BY_FAMILY`.
const SOCK_DIAG: i32 = 4;
const BY_FAMILY: u16 = 20;

/// The states that a socket waits for others in, as bits: TCP's `LISTEN`, and UDP's only one that has no peer, `CLOSE`. One bit more
/// of TCP's has the kernel walk all its connections, those that wait for stray packets (`TIME_WAIT`) too: 40 ms after a benchmark.
const LISTEN: u32 = 1 << 10;
const CLOSE: u32 = 1 << 7;

/// Bytes of `struct inet_diag_req_v2`.
const REQUEST: usize = 56;

/// Where the local port and the local address stand in `struct inet_diag_msg`.
const PORT: usize = 4;
const ADDRESS: usize = 8;

/// Where sockets of a protocol listen; an unspecified address: at every one.
///
/// # Errors
/// The kernel has no sock_diag, or netlink's.
pub fn listeners(protocol: u8) -> Result<Vec<SocketAddr>, NetlinkError> {
    let mut socket = RequestSocket::open(SOCK_DIAG)?;
    let mut found = Vec::new();
    for family in [libc::AF_INET, libc::AF_INET6] {
        found.extend(socket.dump(BY_FAMILY, &request(family as u8, protocol), parse)?);
    }
    Ok(found)
}

fn request(family: u8, protocol: u8) -> [u8; REQUEST] {
    let mut request = [0; REQUEST];
    (request[0], request[1]) = (family, protocol);
    let states = if i32::from(protocol) == libc::IPPROTO_TCP { LISTEN } else { CLOSE };
    request[4..8].copy_from_slice(&states.to_ne_bytes());
    request
}

/// The local address and port.
fn parse(message: &[u8]) -> Option<SocketAddr> {
    let port = u16::from_be_bytes(*message.get(PORT..)?.first_chunk()?);
    let address = message.get(ADDRESS..)?;
    let ip: IpAddr = match i32::from(*message.first()?) {
        libc::AF_INET => (*address.first_chunk::<4>()?).into(),
        libc::AF_INET6 => (*address.first_chunk::<16>()?).into(),
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream, UdpSocket};

    use super::*;

    const TCP: u8 = 6;
    const UDP: u8 = 17;

    /// The addresses at one port.
    fn at_port(protocol: u8, port: u16) -> Vec<IpAddr> {
        let found = listeners(protocol).unwrap().into_iter();
        found.filter(|at| at.port() == port).map(|at| at.ip()).collect()
    }

    #[test]
    fn who_listens_is_found_and_who_only_connects_is_not() {
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = tcp.local_addr().unwrap();
        assert_eq!(at_port(TCP, at.port()), [at.ip()]);
        let client = TcpStream::connect(at).unwrap();
        assert!(at_port(TCP, client.local_addr().unwrap().port()).is_empty());
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        let at = udp.local_addr().unwrap();
        assert_eq!(at_port(UDP, at.port()), [at.ip()]);
    }

    #[test]
    fn a_message_cut_anywhere_is_skipped_without_a_panic() {
        let mut message = [0; 72];
        (message[0], message[4], message[5]) = (libc::AF_INET6 as u8, 0x1f, 0x90);
        assert_eq!(parse(&message), Some(SocketAddr::new(IpAddr::from([0u8; 16]), 8080)));
        assert!((0..24).all(|length| parse(&message[..length]).is_none()));
    }
}

//! Addresses of this network namespace's interfaces.

use std::net::IpAddr;

use nix::libc;

use super::socket::{self, NetlinkError, RequestSocket};

/// Bytes of `struct ifaddrmsg`.
const IFADDRMSG: usize = 8;

/// An address on an interface that others can send to: no loopback address, and none that holds on one link only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterfaceAddress {
    /// The interface.
    pub ifindex: u32,
    /// The address.
    pub ip: IpAddr,
}

/// Every address.
///
/// # Errors
/// Netlink's.
pub fn all(socket: &mut RequestSocket) -> Result<Vec<InterfaceAddress>, NetlinkError> {
    socket.dump(libc::RTM_GETADDR, &[0; IFADDRMSG], parse)
}

/// Those that masquerading may give packets: of IPv4 no secondary ones (`inet_select_addr`), of IPv6 none that is on trial,
/// has failed it or is going out of use; and of both only those that hold everywhere.
///
/// # Errors
/// Netlink's.
pub fn sources(socket: &mut RequestSocket) -> Result<Vec<InterfaceAddress>, NetlinkError> {
    socket.dump(libc::RTM_GETADDR, &[0; IFADDRMSG], |payload| parse(payload).filter(|_| is_source(payload)))
}

fn is_source(payload: &[u8]) -> bool {
    let Some([family, _, flags, scope, ..]) = payload.first_chunk::<IFADDRMSG>() else { return false };
    let unfit = match i32::from(*family) {
        libc::AF_INET => libc::IFA_F_SECONDARY,
        _ => libc::IFA_F_TENTATIVE | libc::IFA_F_DADFAILED | libc::IFA_F_DEPRECATED,
    };
    u32::from(*flags) & unfit == 0 && *scope == libc::RT_SCOPE_UNIVERSE
}

/// Reads the payload of `RTM_NEWADDR` or `RTM_DELADDR`.
pub(super) fn parse(payload: &[u8]) -> Option<InterfaceAddress> {
    let (header, rest) = payload.split_first_chunk::<IFADDRMSG>()?;
    let [_, _, _, _, i0, i1, i2, i3] = *header;
    let (mut local, mut address) = (None, None);
    socket::attributes(rest, |kind, value| match kind {
        libc::IFA_LOCAL => local = read(value),
        // The other end's, where there is a local one too.
        libc::IFA_ADDRESS => address = read(value),
        _ => {}
    });
    let ip = local.or(address).filter(is_reachable)?;
    Some(InterfaceAddress { ifindex: u32::from_ne_bytes([i0, i1, i2, i3]), ip })
}

fn read(value: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(value).map(IpAddr::from);
    v4.or_else(|_| <[u8; 16]>::try_from(value).map(IpAddr::from)).ok()
}

fn is_reachable(ip: &IpAddr) -> bool {
    let is_link_local = matches!(ip, IpAddr::V6(v6) if v6.is_unicast_link_local());
    !ip.is_loopback() && !ip.is_unspecified() && !ip.is_multicast() && !is_link_local
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(family: u8, attributes: &[(u16, &[u8])]) -> Vec<u8> {
        let mut payload = vec![family, 24, 0, 0, 7, 0, 0, 0];
        for (kind, value) in attributes {
            payload.extend((4 + value.len() as u16).to_ne_bytes());
            payload.extend(kind.to_ne_bytes());
            payload.extend(*value);
        }
        payload
    }

    #[test]
    fn a_point_to_point_links_own_address_is_read_and_not_the_other_ends() {
        let payload = message(2, &[(libc::IFA_ADDRESS, &[192, 0, 2, 9]), (libc::IFA_LOCAL, &[192, 0, 2, 1])]);
        let expected = InterfaceAddress { ifindex: 7, ip: [192, 0, 2, 1].into() };
        assert_eq!(parse(&payload), Some(expected));
    }

    #[test]
    fn nobody_sends_to_loopback_and_link_local_addresses() {
        assert_eq!(parse(&message(2, &[(libc::IFA_LOCAL, &[127, 0, 0, 1])])), None);
        let mut link_local = [0; 16];
        link_local[..2].copy_from_slice(&[0xfe, 0x80]);
        assert_eq!(parse(&message(10, &[(libc::IFA_ADDRESS, &link_local)])), None);
    }
}

//! The addresses that a bridge or a VLAN's gateway has, with their subnets.

use std::net::IpAddr;

use nix::libc;

use super::attribute::attribute;
use super::socket::{self, NetlinkError, RequestSocket};
use crate::nft::Prefix;

/// Bytes of `struct ifaddrmsg`.
const IFADDRMSG: usize = 8;

/// Every address of an interface, each with its subnet's length, but those that are good on the link only.
///
/// # Errors
/// Netlink's.
pub fn of(socket: &mut RequestSocket, index: u32) -> Result<Vec<Prefix>, NetlinkError> {
    socket.dump(libc::RTM_GETADDR, &[0; IFADDRMSG], |payload| {
        parse(payload).and_then(|(at, address)| (at == index).then_some(address))
    })
}

/// `IFA_F_NODAD` (`linux/if_addr.h`): usable at once.
const NO_DUPLICATES: u8 = 2;

/// Gives a gateway's interface an address, which works at once: no station may have it but the node. It may have it already.
///
/// # Errors
/// Netlink's.
pub fn add(socket: &mut RequestSocket, index: u32, address: Prefix) -> Result<(), NetlinkError> {
    let (family, flags) = if address.is_v4() { (libc::AF_INET, 0) } else { (libc::AF_INET6, NO_DUPLICATES) };
    let mut payload = vec![family as u8, address.bits(), flags, 0];
    payload.extend(index.to_ne_bytes());
    let octets = octets(address.address());
    payload.extend(attribute(libc::IFA_LOCAL, &octets));
    payload.extend(attribute(libc::IFA_ADDRESS, &octets));
    if let IpAddr::V4(v4) = address.address()
        && address.bits() < 31
    {
        let broadcast = v4.to_bits() | u32::MAX.checked_shr(address.bits().into()).unwrap_or_default();
        payload.extend(attribute(libc::IFA_BROADCAST, &broadcast.to_be_bytes()));
    }
    match socket.make(libc::RTM_NEWADDR, &payload) {
        Err(error) if error.means_exists() => Ok(()),
        other => other,
    }
}

/// Takes an address from an interface. It may be gone already.
///
/// # Errors
/// Netlink's.
pub fn remove(socket: &mut RequestSocket, index: u32, address: Prefix) -> Result<(), NetlinkError> {
    let family = if address.is_v4() { libc::AF_INET } else { libc::AF_INET6 };
    let mut payload = vec![family as u8, address.bits(), 0, 0];
    payload.extend(index.to_ne_bytes());
    payload.extend(attribute(libc::IFA_LOCAL, &octets(address.address())));
    match socket.get(libc::RTM_DELADDR, &payload, |_| {}) {
        Err(error) if error.is_absent() || error.means_no_address() => Ok(()),
        other => other,
    }
}

fn parse(payload: &[u8]) -> Option<(u32, Prefix)> {
    let (header, rest) = payload.split_first_chunk::<IFADDRMSG>()?;
    let [_, bits, _, scope, i0, i1, i2, i3] = *header;
    if scope == libc::RT_SCOPE_LINK {
        return None;
    }
    let (mut local, mut address) = (None, None);
    socket::attributes(rest, |kind, value| match kind {
        libc::IFA_LOCAL => local = read(value),
        libc::IFA_ADDRESS => address = read(value),
        _ => {}
    });
    // Only a point-to-point IPv4 address has both, and IPv6 has no IFA_LOCAL then.
    Some((u32::from_ne_bytes([i0, i1, i2, i3]), Prefix::new(local.or(address)?, bits)))
}

fn read(value: &[u8]) -> Option<IpAddr> {
    match value.len() {
        4 => <[u8; 4]>::try_from(value).ok().map(IpAddr::from),
        16 => <[u8; 16]>::try_from(value).ok().map(IpAddr::from),
        _ => None,
    }
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(v4) => v4.octets().to_vec(),
        IpAddr::V6(v6) => v6.octets().to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_with_its_interface_and_subnet() {
        let mut payload = vec![2, 24, 0, 0, 7, 0, 0, 0];
        payload.extend(attribute(libc::IFA_LOCAL, &[10, 1, 0, 1]));
        assert_eq!(parse(&payload), Some((7, "10.1.0.1/24".parse().unwrap())));
        for length in 0..payload.len() {
            assert_eq!(parse(&payload[..length]), None);
        }
    }
}

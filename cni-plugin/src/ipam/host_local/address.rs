//! Arithmetic on addresses of either family.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The address as a number, for comparisons and distances within one family.
pub(super) fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(address.to_bits()),
        IpAddr::V6(address) => address.to_bits(),
    }
}

/// How many bits an address of this family has.
pub(super) fn width(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    }
}

/// The address `distance` after this one; stays at the family's last address rather than wrap around.
pub(super) fn after(address: IpAddr, distance: u128) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let distance = u32::try_from(distance).unwrap_or(u32::MAX);
            IpAddr::V4(Ipv4Addr::from_bits(address.to_bits().saturating_add(distance)))
        }
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits().saturating_add(distance))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_after_carries_into_the_next_octet_and_stops_at_the_end() {
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        assert_eq!(after(ip("10.0.0.255"), 1), ip("10.0.1.0"));
        assert_eq!(after(ip("255.255.255.255"), 1), ip("255.255.255.255"));
        assert_eq!(after(ip("fd00::ffff"), 1), ip("fd00::1:0"));
        assert_eq!(after(ip("10.0.0.1"), u128::MAX), ip("255.255.255.255"));
    }
}

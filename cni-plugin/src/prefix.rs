//! Addresses that follow from an address with the length of its network's prefix.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

/// The address that a gateway has unless something else is said: the network's first plus one.
pub(crate) fn first_host(prefix: IpNet) -> IpAddr {
    match prefix.network() {
        IpAddr::V4(address) => Ipv4Addr::from_bits(address.to_bits().wrapping_add(1)).into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits().wrapping_add(1)).into(),
    }
}

/// Everything: `0.0.0.0/0` or `::/0`, of the family of `address`.
pub(crate) fn default_route(address: IpAddr) -> IpNet {
    match address {
        IpAddr::V4(_) => ipnet::Ipv4Net::default().into(),
        IpAddr::V6(_) => ipnet::Ipv6Net::default().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_bits_are_kept_and_the_network_is_without_them() {
        let prefix: IpNet = "10.1.2.3/20".parse().unwrap();
        assert_eq!(prefix.to_string(), "10.1.2.3/20");
        assert_eq!(prefix.network().to_string(), "10.1.0.0");
        assert_eq!(first_host(prefix).to_string(), "10.1.0.1");
    }

    #[test]
    fn the_widest_and_the_narrowest_prefix_do_not_overflow() {
        let all: IpNet = "fd00::1/0".parse().unwrap();
        assert!(all.contains(&"1::".parse::<IpAddr>().unwrap()));
        assert!(!all.contains(&"1.2.3.4".parse::<IpAddr>().unwrap()));
        let one: IpNet = "255.255.255.255/32".parse().unwrap();
        assert_eq!(one.network(), one.addr());
        assert_eq!(first_host(one).to_string(), "0.0.0.0");
        assert_eq!(default_route(one.addr()).to_string(), "0.0.0.0/0");
    }
}

//! Which prefixes another node may say that its pods have. Whoever can write nodes decides where this one sends packets, so what is no pods'
//! prefix is refused: it would lead the node's own traffic away.

use std::collections::BTreeSet;
use std::net::IpAddr;

use ipnet::IpNet;
use shunt_netlink::prefix::is_mapped;

/// Lengths of pods' prefixes, of IPv4 and of IPv6: no node has more pods than a /8 has addresses, or fewer than a handful.
const LENGTHS: [std::ops::RangeInclusive<u8>; 2] = [8..=29, 32..=124];

/// Why a prefix cannot be that of a node's pods; `addresses` are those of all nodes.
pub(super) fn objection(prefix: IpNet, addresses: &BTreeSet<IpAddr>) -> Option<&'static str> {
    let ip = prefix.network();
    let is_of_link = match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    };
    if !LENGTHS[usize::from(ip.is_ipv6())].contains(&prefix.prefix_len()) {
        Some("is too large or too small to be one")
    } else if ip.is_loopback() || ip.is_multicast() || ip.is_unspecified() || is_of_link || is_mapped(&prefix)
    {
        Some("is of no addresses that pods can have")
    } else if addresses.range(ip..=prefix.broadcast()).next().is_some() {
        Some("holds a node's own address")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_pods_prefix_is_refused() {
        let addresses = BTreeSet::from(["192.0.2.7".parse().unwrap(), "2001:db8::7".parse().unwrap()]);
        let objection = |text: &str| objection(text.parse().unwrap(), &addresses);
        for text in ["10.244.1.0/24", "10.0.0.0/8", "fd02::/64", "192.0.2.128/25", "2001:db8:1::/48"] {
            assert_eq!(objection(text), None, "{text}");
        }
        for text in [
            "0.0.0.0/0",
            "128.0.0.0/1",
            "::/0",
            "169.254.169.254/32",
            "10.96.0.10/32",
            "169.254.0.0/16",
            "127.0.0.0/8",
            "224.0.0.0/8",
            "fe80::/64",
            "ff00::/32",
            "::ffff:10.9.0.0/112",
            "192.0.2.0/24",
            "192.0.2.4/30",
            "2001:db8::/64",
        ] {
            assert!(objection(text).is_some(), "{text}");
        }
    }
}

//! Masqueraded addresses in `MASQUERADES`.
//!
//! What an address's mask covers is left to the kernel, whose rules tell what is masqueraded of it. So the mask of an address with
//! unmasqueraded destinations covers all of them, and whatever else has the same bits: that costs speed and decides nothing.

use std::net::IpAddr;

use ipnet::IpNet;
use shunt_dataplane::abi::AddressKey;
use shunt_dataplane::abi::translation::Masquerade;
use shunt_dataplane::wire::address::Address;

use crate::registry::Attachment;

/// The entries of an attachment's addresses that the programs masquerade.
pub fn masquerades(attachment: &Attachment) -> impl Iterator<Item = (AddressKey, Masquerade)> {
    let prefixes: Vec<IpNet> = match attachment.is_masqueraded_by_programs() {
        true => attachment.port.masquerade.iter().filter_map(|prefix| prefix.parse().ok()).collect(),
        false => Vec::new(),
    };
    let (bridge, ifindex) = (attachment.port.bridge.index, attachment.port.host.index);
    let kept: Vec<IpNet> = attachment.port.unmasqueraded.iter().filter_map(|to| to.parse().ok()).collect();
    attachment.port.ips.iter().filter_map(move |ip| {
        let prefix = prefixes.iter().find(|prefix| prefix.contains(ip))?;
        let key = AddressKey::new(bridge, 0, Address::from(*ip));
        Some((key, Masquerade { mask: mask(*ip, prefix, &kept), ifindex }))
    })
}

/// The bits in which an address agrees with all of its own prefix and all destinations of its family that are not masqueraded.
fn mask(ip: IpAddr, prefix: &IpNet, unmasqueraded: &[IpNet]) -> Address {
    let is_like = |to: &&IpNet| to.addr().is_ipv4() == ip.is_ipv4();
    let covered = |mask: u128, to: &IpNet| mask & bits(to.netmask()) & !(bits(ip) ^ bits(to.addr()));
    let mask = unmasqueraded.iter().filter(is_like).fold(bits(prefix.netmask()), covered);
    let above = if ip.is_ipv4() { u128::MAX << 32 } else { 0 };
    IpAddr::from((mask | above).to_be_bytes()).into()
}

/// An address's bits, of IPv4 the last 32.
fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => u128::from(u32::from(v4)),
        IpAddr::V6(v6) => v6.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_covers_a_whole_address() {
        let words = |text: &str| {
            let prefix: IpNet = text.parse().unwrap();
            mask(prefix.addr(), &prefix, &[]).words().map(u32::from_be)
        };
        assert_eq!(words("10.77.0.0/16"), [u32::MAX, u32::MAX, u32::MAX, 0xffff_0000]);
        assert_eq!(words("0.0.0.0/0"), [u32::MAX, u32::MAX, u32::MAX, 0]);
        assert_eq!(words("fd77::/68"), [u32::MAX, u32::MAX, 0xf000_0000, 0]);
    }

    fn masked(own: &str, kept: &[&str]) -> Masquerade {
        let own: IpNet = own.parse().unwrap();
        let kept: Vec<_> = kept.iter().map(|text| text.parse().unwrap()).collect();
        Masquerade { mask: mask(own.addr(), &own, &kept), ifindex: 1 }
    }

    #[test]
    fn every_unmasqueraded_destination_is_left_to_the_kernel() {
        let kept = ["10.244.7.0/24", "192.168.0.0/16", "172.16.5.4/32", "fd02::/64", "2001:db8::/32"];
        for own in ["10.244.1.5/24", "fd01::5/64"] {
            let masquerade = masked(own, &kept);
            let own: IpNet = own.parse().unwrap();
            let to = kept.iter().map(|text| text.parse::<IpNet>().unwrap());
            for to in to.filter(|to| to.addr().is_ipv4() == own.addr().is_ipv4()) {
                for end in [to.network(), to.broadcast()] {
                    assert!(masquerade.is_within(own.addr().into(), end.into()), "{end} from {own}");
                }
            }
        }
    }

    #[test]
    fn what_is_beyond_a_clusters_prefix_is_the_programs() {
        let of = |own: &str, kept: &[&str], to: &str| {
            let own_ip = own.parse::<IpNet>().unwrap().addr();
            masked(own, kept).is_within(own_ip.into(), to.parse::<IpAddr>().unwrap().into())
        };
        let nodes = ["10.244.0.0/24", "10.244.1.0/24", "10.244.7.0/24"];
        for (to, is_kernels) in
            [("10.244.7.9", true), ("10.244.3.1", true), ("10.245.0.1", false), ("8.8.8.8", false)]
        {
            assert_eq!(of("10.244.1.5/24", &nodes, to), is_kernels, "{to}");
        }
        assert!(!of("fd01:0:0:1::5/64", &["fd01:0:0:2::/64", "0.0.0.0/0"], "2001:db8::1"));
    }
}

//! Masqueraded addresses in `MASQUERADES`.

use std::net::IpAddr;

use ipnet::IpNet;
use shunt_dataplane::abi::AddressKey;
use shunt_dataplane::abi::translation::Masquerade;
use shunt_dataplane::wire::address::Address;

use crate::registry::Attachment;

/// The entries of an attachment's addresses that are masqueraded.
pub fn masquerades(attachment: &Attachment) -> impl Iterator<Item = (AddressKey, Masquerade)> {
    let prefixes: Vec<IpNet> = match attachment.is_masqueraded() {
        true => attachment.port.masquerade.iter().filter_map(|prefix| prefix.parse().ok()).collect(),
        false => Vec::new(),
    };
    let (bridge, ifindex) = (attachment.port.bridge.index, attachment.port.host.index);
    attachment.port.ips.iter().filter_map(move |ip| {
        let prefix = prefixes.iter().find(|prefix| prefix.contains(ip))?;
        let key = AddressKey::new(bridge, 0, Address::from(*ip));
        Some((key, Masquerade { mask: whole_mask(prefix), ifindex }))
    })
}

/// A prefix's mask, of an IPv4 one as if mapped.
fn whole_mask(prefix: &IpNet) -> Address {
    let mut mask = [0xff; 16];
    let own = match prefix.netmask() {
        IpAddr::V4(mask) => mask.octets().to_vec(),
        IpAddr::V6(mask) => mask.octets().to_vec(),
    };
    mask[16 - own.len()..].copy_from_slice(&own);
    IpAddr::from(mask).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_covers_a_whole_address() {
        let words = |text: &str| whole_mask(&text.parse().unwrap()).words().map(u32::from_be);
        assert_eq!(words("10.77.0.0/16"), [u32::MAX, u32::MAX, u32::MAX, 0xffff_0000]);
        assert_eq!(words("0.0.0.0/0"), [u32::MAX, u32::MAX, u32::MAX, 0]);
        assert_eq!(words("fd77::/68"), [u32::MAX, u32::MAX, 0xf000_0000, 0]);
    }
}

//! The Ethernet address of a node's VXLAN device: every node reckons it from the node's address, so nobody has to publish it.
//!
//! Agents of all versions agree on this. Two nodes of IPv6 may have the same one: of five thousand nodes with a chance of one in a hundred
//! thousand. It is a warning then.

use std::net::IpAddr;

use shunt_agent_api::fnv;

/// The first octet: locally administered, of one station. The device's entries with another one are somebody else's.
const OURS: u8 = 0x52;

/// The second octet of those of IPv4.
const OF_IPV4: u8 = 4;

/// The address of the device of the node that has this one.
pub(super) fn of(node: IpAddr) -> [u8; 6] {
    match node {
        IpAddr::V4(ip) => {
            let [a, b, c, d] = ip.octets();
            [OURS, OF_IPV4, a, b, c, d]
        }
        IpAddr::V6(ip) => {
            let hash = fnv::of_64_bits(&ip.octets());
            // Folded, as the draft has it for fewer bits.
            let [_, _, _, a, b, c, d, e] = (hash ^ (hash >> 40)).to_be_bytes();
            [OURS, a, b, c, d, e]
        }
    }
}

/// Whether an entry for this station is the agent's.
pub(super) fn is_ours(mac: [u8; 6]) -> bool {
    mac[0] == OURS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_version_reckons_the_same_address() {
        let of = |text: &str| of(text.parse().unwrap());
        assert_eq!(of("192.0.2.7"), [0x52, 4, 192, 0, 2, 7]);
        assert_eq!(of("2001:db8::7"), [0x52, 0xb7, 0xa3, 0x47, 0x69, 0xf1]);
        assert_ne!(of("2001:db8::7"), of("2001:db8::8"));
        for mac in [of("192.0.2.7"), of("fd00::1")] {
            assert!(is_ours(mac) && mac[0] & 3 == 2, "locally administered, of one station");
        }
    }
}

//! The MTU of pods whose packets are encapsulated on their way to other nodes.

use std::net::IpAddr;

/// Every IPv6 link has one so large at least (RFC 8200, section 5).
pub(crate) const LEAST_OF_IPV6: u32 = 1280;

/// Every host takes an IPv4 packet so large (RFC 791, section 3.1); a smaller underlay carries no VXLAN.
const LEAST: u32 = 576;

/// The MTU that pods are to have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum PodsMtu {
    /// The kernel's: nothing is encapsulated.
    Kernels,
    /// This one, in bytes.
    Bytes(u32),
    /// It cannot be told: the configuration is left as it is.
    #[default]
    Unknown,
}

/// The bytes around a packet that VXLAN carries: Ethernet 14, VXLAN 8, UDP 8, and IPv4 20 or IPv6 40 (RFC 7348, section 5).
pub(super) const fn overhead(outside: IpAddr) -> u32 {
    if outside.is_ipv4() { 50 } else { 70 }
}

/// What the underlay's MTU leaves for packets inside; none where that is too small.
pub(super) fn inside(underlay: u32, outside: IpAddr) -> Option<u32> {
    underlay.checked_sub(overhead(outside)).filter(|mtu| *mtu >= LEAST)
}

/// The MTU of pods, of which some may have IPv6 addresses: these cannot have less than [`LEAST_OF_IPV6`].
pub(super) fn of_pods(inside: u32, has_ipv6: bool) -> PodsMtu {
    PodsMtu::Bytes(if has_ipv6 { inside.max(LEAST_OF_IPV6) } else { inside })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_around_a_packet_is_taken_from_the_underlays_mtu() {
        let [v4, v6]: [IpAddr; 2] = ["192.0.2.1", "2001:db8::1"].map(|text| text.parse().unwrap());
        assert_eq!(
            [inside(1500, v4), inside(1500, v6), inside(9000, v6)],
            [Some(1450), Some(1430), Some(8930)]
        );
        assert_eq!([inside(625, v4), inside(49, v4), inside(0, v6)], [None; 3]);
        assert_eq!(of_pods(1250, true), PodsMtu::Bytes(1280));
        assert_eq!(of_pods(1250, false), PodsMtu::Bytes(1250));
    }
}

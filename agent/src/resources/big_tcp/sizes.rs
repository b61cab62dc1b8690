//! What a link is handed, and may be.

use shunt_agent_api::{Packets, USUAL_PACKETS};
use shunt_netlink::link::{LargestPackets, PacketSizes};

/// Whether somebody has decided that a link is handed less than its driver takes and the kernel says by itself.
pub(super) fn is_kept_small(link: LargestPackets) -> bool {
    let LargestPackets { possible, ipv6, ipv4 } = one_size(link);
    ipv6.min(ipv4) < possible.min(USUAL_PACKETS)
}

/// What a link is to be handed so that such packets pass, as far as its driver takes them; none where they do already, and where somebody
/// has decided otherwise. What it merges is not shunt's.
pub(super) fn enlarged(now: LargestPackets, packets: Packets) -> Option<PacketSizes> {
    if is_kept_small(now) {
        return None;
    }
    let LargestPackets { possible, ipv6, ipv4 } = one_size(now);
    let (most6, most4) = (ipv6.max(packets.ipv6.min(possible)), ipv4.max(packets.ipv4.min(possible)));
    ((most6, most4) != (ipv6, ipv4)).then_some(PacketSizes { ipv6: most6, ipv4: most4, merges: false })
}

/// Before Linux 6.3 there is one size for both families.
pub(super) fn one_size(now: LargestPackets) -> LargestPackets {
    LargestPackets { ipv4: if now.ipv4 == 0 { now.ipv6 } else { now.ipv4 }, ..now }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(possible: u32, ipv6: u32, ipv4: u32) -> LargestPackets {
        LargestPackets { possible, ipv6, ipv4 }
    }

    fn sizes(ipv6: u32, ipv4: u32) -> Option<PacketSizes> {
        Some(PacketSizes { ipv6, ipv4, merges: false })
    }

    #[test]
    fn a_way_out_is_enlarged_as_far_as_its_driver_goes_and_never_made_smaller() {
        let both = Packets::of_both(131_072);
        assert_eq!(enlarged(link(524_280, 65_536, 65_536), both), sizes(131_072, 131_072));
        assert_eq!(enlarged(link(100_000, 65_536, 65_536), both), sizes(100_000, 100_000));
        assert_eq!(enlarged(link(524_280, 65_536, 262_144), both), sizes(131_072, 262_144));
        assert_eq!(enlarged(link(524_280, 65_536, 0), both), sizes(131_072, 131_072));
        let ipv4 = Packets { ipv4: 131_072, ..Packets::USUAL };
        assert_eq!(enlarged(link(524_280, 65_536, 65_536), ipv4), sizes(65_536, 131_072));
        for nothing in [
            link(524_280, 131_072, 131_072),
            link(524_280, 262_144, 0),
            link(65_536, 65_536, 65_536),
            link(0, 65_536, 0),
            // Somebody's.
            link(524_280, 65_536, 32_768),
            link(524_280, 32_768, 0),
        ] {
            assert_eq!(enlarged(nothing, both), None, "{nothing:?}");
        }
    }
}

//! What a link is handed, and may be.

use shunt_agent_api::{Packets, USUAL_PACKETS};
use shunt_netlink::link::{LargestPackets, PacketSizes};

/// What a link is handed. Before Linux 6.3 there is one size for both families.
pub(super) fn packets(LargestPackets { ipv4, ipv6, .. }: LargestPackets) -> Packets {
    Packets { ipv4: if ipv4 == 0 { ipv6 } else { ipv4 }, ipv6 }
}

/// What a link is to be handed from now on, and is to merge if it `merges`.
pub(super) fn sizes(packets: Packets, merges: bool) -> PacketSizes {
    PacketSizes { ipv6: packets.ipv6, ipv4: packets.ipv4, merges }
}

/// Whether somebody has decided that a link is handed less than its driver takes and the kernel says by itself.
pub(super) fn is_kept_small(link: LargestPackets) -> bool {
    let now = packets(link);
    now.ipv6.min(now.ipv4) < link.possible.min(USUAL_PACKETS)
}

/// What a link is to be handed so that packets of these sizes pass, as far as its driver takes them; none where they do already, and where
/// somebody has decided otherwise.
pub(super) fn enlarged(link: LargestPackets, wanted: Packets) -> Option<Packets> {
    let (now, most) = (packets(link), link.possible);
    let to = Packets { ipv4: now.ipv4.max(wanted.ipv4.min(most)), ipv6: now.ipv6.max(wanted.ipv6.min(most)) };
    (to != now && !is_kept_small(link)).then_some(to)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(possible: u32, ipv6: u32, ipv4: u32) -> LargestPackets {
        LargestPackets { possible, ipv6, ipv4 }
    }

    fn sizes(ipv6: u32, ipv4: u32) -> Option<Packets> {
        Some(Packets { ipv4, ipv6 })
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

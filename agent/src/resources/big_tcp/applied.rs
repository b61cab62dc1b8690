//! Decides the size of a port's packets, and enlarges what they pass.

use shunt_agent_api::{BigTcp, BridgePort, LARGEST_PACKETS, USUAL_PACKETS};
use shunt_netlink::link::{LargestPackets, Link, PacketSizes};

use super::ways_out::taken_by_all;
use crate::resources::{Node, Refusal};

impl Node {
    /// How large the packets of a port's veth are to be, whose host's end is `host`; none where they stay as they are: of a container that is
    /// at work, and of what is no veth.
    ///
    /// # Errors
    /// [`Refusal::Unsupported`] where the kernel cannot have packets of the size that the configuration says.
    pub(crate) fn packet_size(&mut self, port: &BridgePort, host: &Link) -> Result<Option<u32>, Refusal> {
        let is_pair = port.vlan.is_none() && host.kind.as_deref() == Some("veth");
        if !is_pair || self.repairs.in_use.contains(&host.index) {
            return Ok(None);
        }
        let most = host.largest_packets.possible.clamp(USUAL_PACKETS, LARGEST_PACKETS);
        let size = match port.service.big_tcp.unwrap_or(self.packet_sizing.mode) {
            BigTcp::Off => USUAL_PACKETS,
            BigTcp::Bytes(bytes) if bytes > most => {
                let wanted = format!("packets of {bytes} bytes (`bigTcp`)");
                return Err(Refusal::Unsupported { wanted, reason: "the kernel's veth takes 64 KiB" });
            }
            BigTcp::Bytes(bytes) => bytes,
            BigTcp::Auto => self.packets_of_ways_out(port).min(most),
        };
        // A token bucket cuts what is too large for its queue, which costs more than it saves.
        let is_shaped = port.bandwidth.ingress.is_some() || port.bandwidth.egress.is_some();
        let is_kept_small = is_shaped || self.packet_sizing.has_shares;
        Ok(Some(if is_kept_small { USUAL_PACKETS } else { size }))
    }

    /// The largest packets that every way out takes, and the uplink that the port names, which may not be its bridge's yet.
    fn packets_of_ways_out(&mut self, port: &BridgePort) -> u32 {
        let named = port.service.uplink.as_ref().map(|uplink| uplink.name.clone());
        let named = named.and_then(|name| self.kernel.link_named(&name).ok().flatten());
        let ways_out = self.packet_ways_out();
        taken_by_all(ways_out.iter().chain(&named))
    }

    /// Has a port's host end, and all that its packets pass, be handed packets of `size` bytes. Returns what the container's end is to be
    /// handed; none where that is what it has.
    pub(crate) fn enlarge(&mut self, port: &BridgePort, host: &Link, size: Option<u32>) -> Option<u32> {
        let size = size?;
        let LargestPackets { possible, ipv6, ipv4 } = one_size(host.largest_packets);
        if size == USUAL_PACKETS && possible == 0 {
            return None;
        }
        if ipv6 != size || ipv4 != size {
            let sizes = PacketSizes { ipv6: size, ipv4: size, merges: true };
            if let Err(error) = self.kernel.set_packet_sizes(host.index, sizes) {
                tracing::warn!(key = %port.key, size, %error, "packets stay as large as they were");
                return None;
            }
        } else if size == USUAL_PACKETS {
            return None;
        }
        if size > USUAL_PACKETS {
            self.enlarge_around(port, size);
        }
        Some(size)
    }

    /// The same of the port's bridge, its gateway in a VLAN, and the ways out, which stay enlarged.
    fn enlarge_around(&mut self, port: &BridgePort, size: u32) {
        let mut indexes = vec![port.bridge.index];
        if port.service.vlan_gateway.is_some() {
            let gateways = self.registry.gateways.iter();
            let here = gateways.filter(|((bridge, _), _)| *bridge == port.bridge.index);
            indexes.extend(here.flat_map(|(_, it)| [it.link.index, it.port.port.host.index]));
        }
        let uplinks = self.registry.uplinks.values();
        indexes.extend(uplinks.filter(|it| it.bridge.index == port.bridge.index).map(|it| it.link.index));
        let mut links: Vec<Link> =
            indexes.into_iter().filter_map(|index| self.kernel.link(index).ok().flatten()).collect();
        links.extend(self.packet_ways_out());
        for link in links {
            if let Some(sizes) = enlarged(link.largest_packets, size)
                && let Err(error) = self.kernel.set_packet_sizes(link.index, sizes)
            {
                tracing::warn!(link = link.name, size, %error, "the kernel cuts large packets that leave there");
            }
        }
        self.note_enlarged(size);
    }

    /// What was found of the ways out is as it was made.
    fn note_enlarged(&mut self, size: u32) {
        let known = self.packet_sizing.ways_out.iter_mut().flat_map(|(_, links)| links);
        for LargestPackets { possible, ipv6, ipv4 } in known.map(|link| &mut link.largest_packets) {
            let size = size.min(*possible);
            (*ipv6, *ipv4) = (size.max(*ipv6), size.max(*ipv4));
        }
    }
}

/// What a link is to be handed so that packets of `size` bytes pass, as far as its driver takes them; none where they do already. What it
/// merges is not shunt's.
fn enlarged(now: LargestPackets, size: u32) -> Option<PacketSizes> {
    let LargestPackets { possible, ipv6, ipv4 } = one_size(now);
    let size = size.min(possible);
    let passes = ipv6 >= size && ipv4 >= size;
    (!passes).then(|| PacketSizes { ipv6: ipv6.max(size), ipv4: ipv4.max(size), merges: false })
}

/// Before Linux 6.3 there is one size for both families.
fn one_size(now: LargestPackets) -> LargestPackets {
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
        assert_eq!(enlarged(link(524_280, 65_536, 65_536), 131_072), sizes(131_072, 131_072));
        assert_eq!(enlarged(link(100_000, 65_536, 65_536), 131_072), sizes(100_000, 100_000));
        assert_eq!(enlarged(link(524_280, 65_536, 262_144), 131_072), sizes(131_072, 262_144));
        assert_eq!(enlarged(link(524_280, 65_536, 0), 131_072), sizes(131_072, 131_072));
        for nothing in [
            link(524_280, 131_072, 131_072),
            link(524_280, 262_144, 0),
            link(65_536, 65_536, 65_536),
            link(0, 65_536, 0),
        ] {
            assert_eq!(enlarged(nothing, 131_072), None, "{nothing:?}");
        }
    }
}

//! Decides the size of a port's packets, and enlarges what they pass.

use shunt_agent_api::{BigTcp, BridgePort, LARGEST_PACKETS, Packets, USUAL_PACKETS};
use shunt_netlink::link::Link;

use super::sizes::{enlarged, packets, sizes};
use super::ways_out::taken_by_all;
use crate::resources::{Node, Refusal};

impl Node {
    /// How large the packets of a port's veth are to be, whose host's end is `host`; none where they stay as they are: of a container that is
    /// at work, and of what is no veth.
    ///
    /// # Errors
    /// [`Refusal::Unsupported`] where the kernel cannot have packets of the size that the configuration says.
    pub(crate) fn packet_sizes(
        &mut self,
        port: &BridgePort,
        host: &Link,
    ) -> Result<Option<Packets>, Refusal> {
        let is_pair = port.vlan.is_none() && host.kind.as_deref() == Some("veth");
        if !is_pair || self.repairs.in_use.contains(&host.index) {
            return Ok(None);
        }
        let most = host.largest_packets.possible.clamp(USUAL_PACKETS, LARGEST_PACKETS);
        let packets = match port.service.big_tcp.unwrap_or(self.packet_sizing.mode) {
            BigTcp::Off => Packets::USUAL,
            BigTcp::Bytes(bytes) if bytes > most => {
                let wanted = format!("packets of {bytes} bytes (`bigTcp`)");
                return Err(Refusal::Unsupported { wanted, reason: "the kernel's veth takes 64 KiB" });
            }
            BigTcp::Bytes(bytes) => Packets::of_both(bytes),
            // Before Linux 6.3 none of IPv4 are larger.
            BigTcp::Auto if host.largest_packets.ipv4 == 0 => Packets::USUAL,
            BigTcp::Auto => Packets { ipv4: self.packets_of_ways_out(port).min(most), ..Packets::USUAL },
        };
        // A token bucket cuts what is too large for its queue, which costs more than it saves.
        let is_shaped = port.bandwidth.ingress.is_some() || port.bandwidth.egress.is_some();
        let has_queue = is_shaped || self.packet_sizing.has_shares;
        Ok(Some(if has_queue { Packets::USUAL } else { packets }))
    }

    /// The largest packets that every way out takes, and the uplink that the port names, which may not be its bridge's yet.
    fn packets_of_ways_out(&mut self, port: &BridgePort) -> u32 {
        let named = port.service.uplink.as_ref().map(|uplink| uplink.name.clone());
        let named = named.and_then(|name| self.kernel.link_named(&name).ok().flatten());
        let ways_out = self.packet_ways_out();
        taken_by_all(ways_out.iter().chain(&named))
    }

    /// Has a port's host end, and all that its packets pass, be handed packets of these sizes. Returns what the container's end is to be
    /// handed; none where that is what it has.
    pub(crate) fn enlarge(
        &mut self,
        port: &BridgePort,
        host: &Link,
        wanted: Option<Packets>,
    ) -> Option<Packets> {
        let (wanted, now) = (wanted?, packets(host.largest_packets));
        if !wanted.are_large() && (wanted == now || host.largest_packets.possible == 0) {
            return None;
        }
        if wanted != now
            && let Err(error) = self.kernel.set_packet_sizes(host.index, sizes(wanted, true))
        {
            tracing::warn!(key = %port.key, packets = ?wanted, %error, "packets stay as large as they were");
            return None;
        }
        if wanted.are_large() {
            self.enlarge_around(port, wanted);
        }
        Some(wanted)
    }

    /// The same of the port's bridge, its gateway in a VLAN, and the ways out, which stay enlarged.
    fn enlarge_around(&mut self, port: &BridgePort, packets: Packets) {
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
        let due = links.into_iter().filter_map(|link| {
            let to = enlarged(link.largest_packets, packets)?;
            Some((link, to))
        });
        let due: Vec<_> = due.collect();
        self.enlarge_noted(&due);
        self.note_enlarged(packets);
    }

    /// What was found of the ways out is as it was made.
    fn note_enlarged(&mut self, packets: Packets) {
        let known = self.packet_sizing.ways_out.iter_mut().flat_map(|(_, links)| links);
        for largest in known.map(|link| &mut link.largest_packets) {
            if let Some(to) = enlarged(*largest, packets) {
                (largest.ipv6, largest.ipv4) = (to.ipv6, to.ipv4);
            }
        }
    }
}

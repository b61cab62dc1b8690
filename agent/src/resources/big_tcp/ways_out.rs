//! The links by which packets leave the node, and what those take.

use std::collections::BTreeMap;
use std::time::Duration;

use shunt_agent_api::{LARGEST_PACKETS, USUAL_PACKETS};
use shunt_netlink::link::Link;

use super::sizes::is_kept_small;
use crate::failpoints;
use crate::kernel::KernelError;
use crate::resources::Node;

/// Kinds of links by which nothing leaves.
const DEAD_ENDS: [&str; 3] = ["dummy", "ifb", "nlmon"];

/// How long what was found is taken for true: routes and hardware seldom change.
const PERIOD: Duration = Duration::from_secs(5);

impl Node {
    /// The links by which packets leave the node, those below others among them. Where the kernel cannot say, one that takes nothing large.
    pub(super) fn packet_ways_out(&mut self) -> Vec<Link> {
        let now = failpoints::now();
        if let Some((at, known)) = &self.packet_sizing.ways_out
            && now.duration_since(*at) < PERIOD
        {
            return known.clone();
        }
        let found = self.find_packet_ways_out().unwrap_or_else(|error| {
            tracing::warn!(%error, "cannot find the ways out of the node: packets stay at 64 KiB");
            vec![Link::default()]
        });
        self.packet_sizing.ways_out = Some((now, found.clone()));
        found
    }

    fn find_packet_ways_out(&mut self) -> Result<Vec<Link>, KernelError> {
        let mut names: Vec<String> = self.ledger.uplinks().map(str::to_owned).collect();
        names.extend(self.packet_sizing.tunnel.clone());
        let mut due = Vec::new();
        for name in names {
            due.extend(self.kernel.link_named(&name)?);
        }
        let mut indexes = self.kernel.default_interfaces()?;
        indexes.extend(self.registry.uplinks.keys().copied());
        for index in indexes {
            due.extend(self.kernel.link(index)?);
        }
        if due.is_empty() {
            due = self.kernel.links()?;
            due.retain(|link| self.leads_elsewhere(link));
        }
        let mut found = BTreeMap::new();
        while let Some(link) = due.pop() {
            if !link.loopback && !found.contains_key(&link.index) {
                due.extend(self.links_below(&link)?);
                found.insert(link.index, link);
            }
        }
        Ok(found.into_values().collect())
    }

    /// Whether a link that is nobody's port may lead out of a node without default routes and uplinks.
    fn leads_elsewhere(&self, link: &Link) -> bool {
        let is_dead_end = link.kind.as_deref().is_some_and(|kind| DEAD_ENDS.contains(&kind));
        link.up && link.master.is_none() && !is_dead_end && !self.is_known(link.index)
    }

    /// The links that a link hands its packets to. A bridge with attachments hands them to its uplinks, which are known, and to containers.
    fn links_below(&mut self, link: &Link) -> Result<Vec<Link>, KernelError> {
        match link.kind.as_deref() {
            Some("bridge") if self.registry.bridge(link.index).is_some() => Ok(Vec::new()),
            Some("bridge" | "bond" | "team") => self.kernel.ports(link.index),
            Some("vlan" | "macvlan" | "ipvlan") => {
                match link.peer.filter(|_| link.peer_namespace.is_none()) {
                    Some(below) => Ok(self.kernel.link(below)?.into_iter().collect()),
                    None => Ok(Vec::new()),
                }
            }
            _ => Ok(Vec::new()),
        }
    }
}

/// The largest packets that all of these take: 64 KiB where one cannot take more, does not say, or is not to be handed even that.
pub(super) fn taken_by_all<'a>(ways_out: impl Iterator<Item = &'a Link>) -> u32 {
    let taken = |link: &Link| match link.largest_packets {
        largest if is_kept_small(largest) => USUAL_PACKETS,
        largest => largest.possible,
    };
    let possible = ways_out.map(taken).min();
    possible.unwrap_or(LARGEST_PACKETS).clamp(USUAL_PACKETS, LARGEST_PACKETS)
}

#[cfg(test)]
mod tests {
    use shunt_netlink::link::LargestPackets;

    use super::*;

    fn taken(possible: &[u32]) -> u32 {
        let link = |possible: &u32| Link {
            largest_packets: LargestPackets { possible: *possible, ipv6: *possible, ipv4: *possible },
            ..Link::named("eth0")
        };
        let links: Vec<_> = possible.iter().map(link).collect();
        taken_by_all(links.iter())
    }

    #[test]
    fn packets_are_as_large_as_every_way_out_takes_them() {
        for (possible, size) in [
            (&[][..], 524_280),
            (&[524_280], 524_280),
            (&[524_280, 131_072], 131_072),
            (&[524_280, 65_536], 65_536),
            (&[524_280, 16_000], 65_536),
            (&[524_280, 0], 65_536),
            (&[u32::MAX], 524_280),
        ] {
            assert_eq!(taken(possible), size, "{possible:?}");
        }
        let largest_packets = LargestPackets { possible: 524_280, ipv6: 32_768, ipv4: 32_768 };
        let decided = Link { largest_packets, ..Link::named("eth0") };
        assert_eq!(taken_by_all([&decided].into_iter()), USUAL_PACKETS, "somebody's decision");
    }
}

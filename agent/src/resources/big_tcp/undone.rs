//! Larger packets of bridges and ways out, which go back to what they were when shunt goes.

use shunt_agent_api::{Interface, Packets};
use shunt_netlink::link::Link;

use super::sizes::{packets, sizes};
use crate::resources::Node;
use crate::state::Enlarged;

impl Node {
    /// Has links be handed larger packets, once it is written down what they had.
    pub(super) fn enlarge_noted(&mut self, due: &[(Link, Packets)]) {
        if due.is_empty() {
            return;
        }
        let mut noted = self.store.enlarged();
        let is_there = |one: &Enlarged| {
            let found = self.kernel.link(one.link.index).ok().flatten();
            found.is_some_and(|found| found.name == one.link.name)
        };
        noted.retain(is_there);
        due.iter().for_each(|(link, to)| note(&mut noted, link, *to));
        if let Err(error) = self.store.write_enlarged(&noted) {
            tracing::warn!(%error, "cannot write down which packets interfaces take: they keep their sizes");
            return;
        }
        for (link, to) in due {
            if let Err(error) = self.kernel.set_packet_sizes(link.index, sizes(*to, false)) {
                tracing::warn!(link = link.name, %error, "the kernel cuts large packets that leave there");
            }
        }
    }

    /// Gives links what they had, once nobody is attached any more, or an uplink's queue is shared out, which would lose large packets.
    pub(crate) fn return_unneeded_sizes(&mut self) {
        if self.registry.attachments().next().is_none() || self.packet_sizing.has_shares {
            let left = self.return_packet_sizes();
            left.into_iter().for_each(|left| tracing::warn!(left, "interfaces keep larger packets"));
        }
    }

    /// Gives links what they had, unless somebody has given them something else since. Says what could not be, which stays noted.
    pub(crate) fn return_packet_sizes(&mut self) -> Vec<String> {
        let noted = self.store.enlarged();
        let mut left = Vec::new();
        for Enlarged { link, before, now } in &noted {
            let is_as_made = |found: &Link| found.name == link.name && packets(found.largest_packets) == *now;
            match self.kernel.link(link.index) {
                Ok(found) if found.as_ref().is_some_and(is_as_made) => {
                    let returned = self.kernel.set_packet_sizes(link.index, sizes(*before, false));
                    left.extend(
                        returned.err().map(|error| format!("the size of packets of {}: {error}", link.name)),
                    );
                }
                Ok(_) => {}
                Err(error) => left.push(format!("the size of packets of {}: {error}", link.name)),
            }
        }
        if left.is_empty() && !noted.is_empty() {
            left.extend(self.store.remove_enlarged().err().map(|error| error.to_string()));
        }
        self.packet_sizing.ways_out = None;
        left
    }
}

/// Notes what a link has, unless it is noted, and what it is given.
fn note(noted: &mut Vec<Enlarged>, link: &Link, to: Packets) {
    let had = packets(link.largest_packets);
    match noted.iter_mut().find(|one| one.link.index == link.index && one.link.name == link.name) {
        // Somebody has given it something else: that is what it had.
        Some(one) if one.now != had => (one.before, one.now) = (had, to),
        Some(one) => one.now = to,
        None => noted.push(Enlarged {
            link: Interface { name: link.name.clone(), index: link.index },
            before: had,
            now: to,
        }),
    }
}

#[cfg(test)]
mod tests {
    use shunt_netlink::link::LargestPackets;

    use super::*;

    #[test]
    fn what_a_link_had_before_shunt_is_noted_however_often_it_is_enlarged() {
        let link = |ipv4| Link {
            largest_packets: LargestPackets { possible: 524_280, ipv6: 65_536, ipv4 },
            ..Link::named("eth0")
        };
        let sizes = |ipv4| Packets { ipv4, ipv6: 65_536 };
        let mut noted = Vec::new();
        note(&mut noted, &link(65_536), sizes(131_072));
        note(&mut noted, &link(131_072), sizes(262_144));
        let [one] = &noted[..] else { panic!("one link") };
        assert_eq!((one.before.ipv4, one.now.ipv4), (65_536, 262_144));
        // An operator's.
        note(&mut noted, &link(100_000), sizes(262_144));
        assert_eq!((noted[0].before.ipv4, noted[0].now.ipv4), (100_000, 262_144));
    }
}

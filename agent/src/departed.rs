//! What containers that are gone have carried, by the namespace of their pods: sums over a namespace never fall when a pod goes.
//!
//! Of [`MAX_NAMESPACES`] the one whose last container went longest ago makes room for a new one; its figures stay in the node's sum.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use shunt_agent_api::Traffic;

/// Namespaces that are kept apart.
pub const MAX_NAMESPACES: usize = 1024;

/// What containers have carried.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Carried {
    /// What they sent.
    pub from: Traffic,
    /// What they were sent.
    pub to: Traffic,
    /// What was dropped at their interfaces, by stage and reason.
    pub drops: Vec<Dropped>,
    /// When the last of them went, as a number that grows.
    pub last: u64,
}

/// Drops of one reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Dropped {
    /// The stage that dropped.
    pub stage: String,
    /// Why.
    pub reason: String,
    /// Packets.
    pub packets: u64,
    /// Bytes, Ethernet header included.
    pub bytes: u64,
}

/// What is known of those that are gone.
///
/// Invariant: at most [`MAX_NAMESPACES`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Departed {
    namespaces: BTreeMap<String, Carried>,
    /// Of namespaces that made room.
    rest: Carried,
    clock: u64,
}

impl Departed {
    /// Adds what a container of a namespace has carried. `is_living` says of which namespaces there are containers still.
    pub fn add(&mut self, namespace: &str, carried: &Carried, is_living: impl Fn(&str) -> bool) {
        self.clock += 1;
        let sum = self.namespaces.entry(namespace.to_owned()).or_default();
        sum.add(carried);
        sum.last = self.clock;
        while self.namespaces.len() > MAX_NAMESPACES {
            let gone = self.namespaces.iter().filter(|(name, _)| !is_living(name));
            let oldest = gone.min_by_key(|(_, carried)| carried.last).map(|(name, _)| name.clone());
            let oldest = oldest.or_else(|| self.namespaces.keys().next().cloned());
            let Some(made) = oldest.and_then(|name| self.namespaces.remove(&name)) else { return };
            self.rest.add(&made);
        }
    }

    /// Those that are kept, by namespace.
    pub fn namespaces(&self) -> impl Iterator<Item = (&str, &Carried)> {
        self.namespaces.iter().map(|(name, carried)| (name.as_str(), carried))
    }

    /// All of it, in parts.
    pub fn all(&self) -> impl Iterator<Item = &Carried> {
        self.namespaces.values().chain([&self.rest])
    }
}

impl Carried {
    fn add(&mut self, other: &Self) {
        add(&mut self.from, other.from);
        add(&mut self.to, other.to);
        for dropped in &other.drops {
            let Dropped { stage, reason, packets, bytes } = dropped;
            match self.drops.iter_mut().find(|known| known.stage == *stage && known.reason == *reason) {
                Some(known) => {
                    known.packets = known.packets.saturating_add(*packets);
                    known.bytes = known.bytes.saturating_add(*bytes);
                }
                None => self.drops.push(dropped.clone()),
            }
        }
    }
}

fn add(sum: &mut Traffic, more: Traffic) {
    let Traffic { packets, bytes, fast, kernel, dropped } = more;
    let figures = [
        (&mut sum.packets, packets),
        (&mut sum.bytes, bytes),
        (&mut sum.fast, fast),
        (&mut sum.kernel, kernel),
        (&mut sum.dropped, dropped),
    ];
    for (figure, more) in figures {
        *figure = figure.saturating_add(more);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn carried(bytes: u64) -> Carried {
        let from = Traffic { packets: 1, bytes, fast: 1, kernel: 0, dropped: 2 };
        let dropped =
            Dropped { stage: "police".into(), reason: "rate_exceeded".into(), packets: 2, bytes: 9 };
        Carried { from, drops: vec![dropped], ..Carried::default() }
    }

    #[test]
    fn a_namespace_is_the_sum_of_its_containers() {
        let mut departed = Departed::default();
        for (namespace, bytes) in [("team", 10), ("other", 1), ("team", 5)] {
            departed.add(namespace, &carried(bytes), |_| false);
        }
        let sums: Vec<_> = departed.namespaces().map(|(name, sum)| (name, sum.from.bytes)).collect();
        assert_eq!(sums, [("other", 1), ("team", 15)]);
        let (_, team) = departed.namespaces().nth(1).unwrap();
        assert_eq!((team.drops.len(), team.drops[0].packets, team.from.dropped), (1, 4, 4));
    }

    #[test]
    fn the_namespace_that_is_empty_longest_makes_room_and_stays_in_the_nodes_sum() {
        let mut departed = Departed::default();
        for number in 0..=MAX_NAMESPACES {
            departed.add(&format!("ns-{number:04}"), &carried(1), |name| name == "ns-0000");
        }
        let names: Vec<_> = departed.namespaces().map(|(name, _)| name.to_owned()).collect();
        assert_eq!(
            (names.len(), names[0].as_str(), names[1].as_str()),
            (MAX_NAMESPACES, "ns-0000", "ns-0002")
        );
        assert_eq!(departed.all().map(|sum| sum.from.bytes).sum::<u64>(), MAX_NAMESPACES as u64 + 1);
        // Room is made even where every namespace has containers.
        departed.add("one-more", &carried(1), |_| true);
        assert_eq!(departed.namespaces().count(), MAX_NAMESPACES);
    }

    #[test]
    fn it_is_read_as_it_was_written_also_by_an_agent_that_knows_fewer_fields() {
        let mut departed = Departed::default();
        departed.add("te\"am", &carried(7), |_| false);
        let text = serde_json::to_string(&departed).unwrap();
        assert_eq!(serde_json::from_str::<Departed>(&text).unwrap(), departed);
        let newer = text.replacen('{', "{\"new\":1,", 1);
        assert_eq!(serde_json::from_str::<Departed>(&newer).unwrap(), departed);
        assert_eq!(serde_json::from_str::<Departed>("{}").unwrap(), Departed::default());
    }
}

//! What each container has of `ASSURED`, counted by the programs and corrected after each sweep: an update by the agent may lose what a program
//! adds at the same moment.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use aya::maps::{Array, Map, MapData, MapError};
use shunt_dataplane::abi::share::Share;
use shunt_dataplane::abi::translation::TupleKey;

use super::pairs::{self, Connection, Flows};

/// RFC 5382 REQ-5: no established connection that has been idle for less is given up, in nanoseconds.
const IDLE: u64 = 124 * 60 * 1_000_000_000;

/// A count that is wrong by more than this part of the limit is corrected. Less may be what was added during the look.
const PART: i64 = 16;

/// `SHARES`, and what it said before the maps were read.
pub(super) struct Shares {
    map: Array<MapData, Share>,
    before: HashMap<u32, i64>,
}

impl Shares {
    /// Opens the map by its pin.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn open(pin: &Path) -> Result<Self, MapError> {
        Ok(Self { map: Array::try_from(Map::Array(MapData::from_pin(pin)?))?, before: HashMap::new() })
    }

    /// Reads the counts of these slots, before the connections are.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn look(&mut self, slots: &HashSet<u32>) -> Result<(), MapError> {
        for slot in slots {
            let _earlier = self.before.insert(*slot, self.map.get(slot, 0)?.assured);
        }
        Ok(())
    }

    /// The entries of the connections that go so that their containers may have others: of a container that has all it may have those that
    /// have been idle for longest, and for longer than [`IDLE`], until a sixteenth is free.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn too_many(&self, assured: &Flows, now: u64) -> Result<Vec<TupleKey>, MapError> {
        let mut of_each: BTreeMap<u32, Vec<Connection>> = BTreeMap::new();
        for connection in pairs::connections(assured) {
            of_each.entry(connection.opener.slot()).or_default().push(connection);
        }
        let mut going = Vec::new();
        for (slot, mut connections) in of_each {
            let most = self.map.get(&slot, 0)?.most;
            going.extend(longest_idle(&mut connections, most, now));
        }
        Ok(going)
    }

    /// Corrects the counts by what was found, and by what was `removed` since. Returns the slots that have any.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn correct(
        &mut self,
        assured: &Flows,
        removed: &HashMap<u32, i64>,
    ) -> Result<HashSet<u32>, MapError> {
        let mut found: HashMap<u32, i64> = self.before.keys().map(|slot| (*slot, 0)).collect();
        for flow in assured.values() {
            *found.entry(flow.slot()).or_default() += 1;
        }
        for (slot, found) in &found {
            let share = self.map.get(slot, 0)?;
            let drift = self.before.get(slot).map_or(0, |before| before - found);
            let tolerated = (i64::from(share.most) / PART).max(2);
            let drift = if *found == 0 || drift.abs() > tolerated { drift } else { 0 };
            let change = drift + removed.get(slot).copied().unwrap_or_default();
            if change != 0 {
                self.map.set(*slot, Share { assured: share.assured - change, ..share }, 0)?;
            }
        }
        Ok(found.into_iter().filter(|(_, found)| *found != 0).map(|(slot, _)| slot).collect())
    }

    /// Those of the slots that may have no more.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn full(&self, slots: &HashSet<u32>) -> Result<HashSet<u32>, MapError> {
        let mut full = HashSet::new();
        for slot in slots {
            let share = self.map.get(slot, 0)?;
            if share.most != 0 && share.assured >= share.most.into() {
                full.insert(*slot);
            }
        }
        Ok(full)
    }
}

/// The entries of those that go of a container's `connections`, where it may have `most` entries.
fn longest_idle(connections: &mut [Connection], most: u32, now: u64) -> Vec<TupleKey> {
    let room = (most - most / 16) as usize / 2;
    let excess = connections.len().saturating_sub(room);
    if most == 0 || 2 * connections.len() < most as usize {
        return Vec::new();
    }
    let touched = |connection: &Connection| connection.opener.touched.max(connection.answerer.touched);
    connections.sort_by_key(touched);
    let idle = connections.iter().take(excess).take_while(|one| now.saturating_sub(touched(one)) > IDLE);
    idle.flat_map(|connection| connection.entries().map(|(key, _)| key)).collect()
}

#[cfg(test)]
mod tests {
    use shunt_dataplane::abi::translation::{TRANSLATION_OPENER, Translation};

    use super::*;

    fn connection(port: u16, touched: u64) -> Connection {
        let request = TupleKey { source_port: port.into(), protocol: 6, ..TupleKey::default() };
        let half = |becomes, flags| Translation { becomes, touched, flags, ..Translation::default() };
        let becomes = TupleKey { domain: 9, ..request };
        Connection {
            request,
            opener: half(becomes, TRANSLATION_OPENER),
            answerer: half(request.reversed(0), 0),
        }
    }

    #[test]
    fn of_a_full_container_the_longest_idle_go_and_never_one_that_the_standard_keeps() {
        let now = 10 * IDLE;
        let mut connections: Vec<_> = (0..32).map(|n| connection(n, now - u64::from(n) * IDLE / 8)).collect();
        let ports = |going: Vec<TupleKey>| {
            let mut ports: Vec<_> = going.iter().map(|key| key.source_port.number()).collect();
            ports.sort_unstable();
            ports.dedup();
            ports
        };
        assert_eq!(
            ports(longest_idle(&mut connections, 64, now)),
            [0, 30, 31],
            "the other entries are from port 0"
        );
        assert!(longest_idle(&mut connections, 66, now).is_empty(), "there is room");
        assert!(longest_idle(&mut connections, 0, now).is_empty(), "there is no limit");
        let mut young: Vec<_> = (0..32).map(|n| connection(n, now - IDLE)).collect();
        assert!(longest_idle(&mut young, 64, now).is_empty(), "none has been idle for long enough");
        let mut some: Vec<_> = (0..32).map(|n| connection(n, if n == 7 { 0 } else { now })).collect();
        assert_eq!(ports(longest_idle(&mut some, 64, now)), [0, 7]);
    }
}

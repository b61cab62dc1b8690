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

/// `SHARES`, and what it said of each container before the maps were read.
pub(super) struct Shares {
    map: Array<MapData, Share>,
    before: HashMap<u32, i64>,
}

impl Shares {
    /// Opens the map by its pin, and reads what it says of these slots. To be called before the connections are read.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn open(pin: &Path, slots: &[u32]) -> Result<Self, MapError> {
        let map: Array<MapData, Share> = Array::try_from(Map::Array(MapData::from_pin(pin)?))?;
        let before = slots.iter().map(|slot| Ok((*slot, map.get(slot, 0)?.assured)));
        let before = before.collect::<Result<_, MapError>>()?;
        Ok(Self { map, before })
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

    /// Corrects the counts by what was found. To be called once the connections have been read, and before any is removed.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn correct(&mut self, assured: &Flows) -> Result<(), MapError> {
        let mut found: HashMap<u32, i64> = HashMap::new();
        for flow in assured.values() {
            *found.entry(flow.slot()).or_default() += 1;
        }
        for (slot, before) in &self.before {
            let share = self.map.get(slot, 0)?;
            let drift = drift([*before, share.assured], found.get(slot).copied().unwrap_or_default());
            if drift != 0 {
                self.map.set(*slot, Share { assured: share.assured - drift, ..share }, 0)?;
            }
        }
        Ok(())
    }

    /// Takes `removed` entries from the counts.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn remove(&mut self, removed: &HashMap<u32, i64>) -> Result<(), MapError> {
        for (slot, removed) in removed {
            let share = self.map.get(slot, 0)?;
            self.map.set(*slot, Share { assured: share.assured - removed, ..share }, 0)?;
        }
        Ok(())
    }

    /// The slots that may have no more.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn full(&self) -> Result<HashSet<u32>, MapError> {
        let mut full = HashSet::new();
        for slot in self.before.keys() {
            let share = self.map.get(slot, 0)?;
            if share.most != 0 && share.assured >= share.most.into() {
                full.insert(*slot);
            }
        }
        Ok(full)
    }
}

/// By how much a count is too large that was `[before, after]` a look which found so many. What came and went during the look is
/// no error: `found` may be anything between both.
pub(crate) fn drift([before, after]: [i64; 2], found: i64) -> i64 {
    let (low, high) = (before.min(after), before.max(after));
    found.clamp(low, high) - found
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
    fn a_count_is_corrected_by_what_no_coming_and_going_explains() {
        assert_eq!(drift([10, 10], 10), 0);
        assert_eq!(drift([10, 14], 12), 0, "four came during the look");
        assert_eq!(drift([14, 10], 12), 0, "four went");
        assert_eq!(drift([10, 14], 8), 2);
        assert_eq!(drift([10, 14], 20), -6);
        assert_eq!(drift([100, 100], 0), 100, "a slot whose entries have gone without it");
        assert_eq!(drift([-3, -3], 0), -3);
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

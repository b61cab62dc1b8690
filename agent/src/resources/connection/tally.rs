//! What came by each host port, counted by one walk of the table. A walk takes longer than an ADD may wait: only readers' threads do it.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use aya::maps::MapError;

use super::state::lock;
use super::table::Table;
use super::volumes::{self, HostPortCounters, Place, Volumes};

/// A walk that takes no longer is done each time.
const SHORT: Duration = Duration::from_millis(10);

/// After a longer one its tally is told again for so many times what it took beyond, and no longer than [`OLDEST`]: who asks without a pause
/// costs a small part of a processor.
const SPARING: u32 = 20;

/// The oldest tally that is told.
const OLDEST: Duration = Duration::from_secs(5);

/// One count of the table.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    volumes: HashMap<Place, Volumes>,
    connections: HashMap<Place, u64>,
}

/// The latest count, which readers share.
#[derive(Debug)]
pub(crate) struct Tallies {
    /// The table.
    pub(crate) table: Table,
    counters: Arc<Mutex<HostPortCounters>>,
    latest: Mutex<Option<Taken>>,
}

#[derive(Debug)]
struct Taken {
    tally: Arc<Tally>,
    at: Instant,
    took: Duration,
}

impl Tallies {
    /// Counts `table`; `counters` have the counts of removed entries.
    pub(crate) fn new(table: Table, counters: Arc<Mutex<HostPortCounters>>) -> Self {
        Self { table, counters, latest: Mutex::new(None) }
    }

    /// The latest tally, or a new one where that is too old. Who asks during a walk waits for it.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn tally(&self) -> Result<Arc<Tally>, MapError> {
        let mut latest = lock(&self.latest);
        if let Some(taken) = latest.as_ref().filter(|taken| is_fresh(taken.at.elapsed(), taken.took)) {
            return Ok(Arc::clone(&taken.tally));
        }
        let at = Instant::now();
        let tally = Arc::new(Tally::take(&self.table, &self.counters)?);
        *latest = Some(Taken { tally: Arc::clone(&tally), at, took: at.elapsed() });
        Ok(tally)
    }

    /// How many connections lead to these places, and what came by them, which never falls.
    pub(crate) fn figures(&self, tally: &Tally, places: &[Place]) -> (u64, Volumes) {
        let mut counters = lock(&self.counters);
        let (mut connections, mut volume) = (0, Volumes::default());
        for place in places {
            connections += tally.connections.get(place).copied().unwrap_or_default();
            volume += counters.tell(*place, tally.volumes.get(place).copied().unwrap_or_default());
        }
        (connections, volume)
    }
}

impl Tally {
    fn take(table: &Table, counters: &Mutex<HostPortCounters>) -> Result<Self, MapError> {
        let mut tally = Self { volumes: lock(counters).swept(), connections: HashMap::new() };
        let mappings = table.mappings()?;
        table.walk(|key, flow| {
            if let Some(place) = volumes::place(key, flow, |own| mappings.contains_key(own)) {
                *tally.volumes.entry(place).or_default() += Volumes::of(flow);
                if table.connection(key, flow).is_some() {
                    *tally.connections.entry(place).or_default() += 1;
                }
            }
            ControlFlow::Continue(())
        })?;
        Ok(tally)
    }
}

fn is_fresh(age: Duration, took: Duration) -> bool {
    age < OLDEST.min(took.saturating_sub(SHORT) * SPARING)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longer_a_walk_took_the_longer_its_tally_is_told_and_never_for_more_than_seconds() {
        let ms = Duration::from_millis;
        assert!(!is_fresh(Duration::ZERO, ms(10)), "a small table is counted each time");
        assert!(is_fresh(ms(1_900), ms(110)) && !is_fresh(ms(2_100), ms(110)));
        assert!(is_fresh(ms(4_900), ms(9_000)) && !is_fresh(ms(5_100), ms(9_000)));
    }
}

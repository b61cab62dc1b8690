//! What the entries of translated connections say, and which of them are over.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use shunt_dataplane::abi::translation::{TRANSLATION_OPENER, Translation, TupleKey, is_tracked};
use shunt_dataplane::nat::connection::{self, Fate, Phase, Shown};
use shunt_dataplane::wire::Protocol;

/// Entries of `ASSURED` and `FLOWS`, as one look at the maps found them.
pub(crate) type Flows = HashMap<TupleKey, Translation>;

/// A half may be seen before the other one is there: younger than this it is not called a leftover.
const YOUNG: u64 = 5_000_000_000;

/// One connection: its opener's entry and the other one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Connection {
    /// The tuple of the opener's packets.
    pub request: TupleKey,
    /// What they become.
    pub opener: Translation,
    /// The other direction.
    pub answerer: Translation,
}

impl Connection {
    /// The connection of two entries; none if they are of two connections.
    pub(crate) fn of(request: TupleKey, opener: Translation, answerer: Translation) -> Option<Self> {
        (answerer.begun == opener.begun).then_some(Self { request, opener, answerer })
    }

    /// Both of its entries.
    pub(super) fn entries(&self) -> [(TupleKey, Translation); 2] {
        let becomes = self.opener.becomes;
        [(self.request, self.opener), (becomes.reversed(becomes.domain), self.answerer)]
    }

    /// What it has come to.
    pub(crate) fn phase(&self) -> Phase {
        connection::phase(Shown(self.opener.shown), Shown(self.answerer.shown))
    }

    /// How long it is remembered from now on, if nothing comes any more.
    pub(crate) fn remaining(&self, now: u64) -> Duration {
        let touched = self.opener.touched.max(self.answerer.touched);
        let lifetime = connection::lifetime(Protocol(self.request.protocol), self.phase());
        Duration::from_nanos(lifetime.saturating_sub(now.saturating_sub(touched)))
    }

    /// Whether a container has begun it, and the world sees the node.
    pub(crate) const fn is_masqueraded(&self) -> bool {
        !self.opener.is_of_host_port()
    }

    /// Whether the kernel has opened it, behind others' rules.
    pub(crate) const fn is_opened_by_kernel(&self) -> bool {
        is_tracked(self.opener.holder)
    }

    fn is_over(&self, now: u64) -> bool {
        let protocol = Protocol(self.request.protocol);
        let (opener, answerer) = (self.opener.direction(), self.answerer.direction());
        let fate = connection::fate(protocol, opener, answerer, false, now);
        fate == Fate::Strays
    }
}

/// Every connection that has both of its entries.
pub(super) fn connections(flows: &Flows) -> impl Iterator<Item = Connection> {
    flows.iter().filter(|(_, flow)| flow.flags & TRANSLATION_OPENER != 0).filter_map(|(request, opener)| {
        let answerer = flows.get(&opener.becomes.reversed(opener.becomes.domain))?;
        Connection::of(*request, *opener, *answerer)
    })
}

/// The entries that are to go: of connections that are over or have lost their mapping or their container, and halves that are left over.
pub(crate) fn stale(flows: &Flows, now: u64, is_mapped: impl Fn(&Connection) -> bool) -> Vec<TupleKey> {
    // Whether the connection goes, by the keys of both of its entries.
    let whole: HashMap<_, _> = connections(flows)
        .flat_map(|connection| {
            let becomes = connection.opener.becomes;
            let goes = connection.is_over(now) || !is_mapped(&connection);
            [(connection.request, goes), (becomes.reversed(becomes.domain), goes)]
        })
        .collect();
    let is_old = |flow: &Translation| now.saturating_sub(flow.begun) > YOUNG;
    let goes = |(key, flow): &(&TupleKey, &Translation)| *whole.get(*key).unwrap_or(&is_old(flow));
    flows.iter().filter(goes).map(|(key, _)| *key).collect()
}

/// Whether any but those that are to go is of a connection that a container has begun, and that no kernel would go on with.
pub(crate) fn has_masqueraded(flows: &Flows, stale: &[TupleKey]) -> bool {
    let stale: HashSet<_> = stale.iter().collect();
    let is_one = |flow: &Translation| !flow.is_of_host_port() && !is_tracked(flow.holder);
    flows.iter().any(|(key, flow)| is_one(flow) && !stale.contains(key))
}

/// How many entries have made room for others: what was made, and is neither there nor was removed by us.
#[derive(Debug, Default)]
pub(crate) struct Evictions {
    /// What was missing when we began; an earlier agent knew why.
    before: Option<u64>,
    removed: u64,
    counted: u64,
}

impl Evictions {
    /// Counts what is missing when `made` entries have been made and `present` are there. Entries come and go meanwhile,
    /// so the figure may lag behind; it never falls.
    pub(crate) fn see(&mut self, made: u64, present: u64) {
        let missing = made.wrapping_sub(present).wrapping_sub(self.removed);
        let before = *self.before.get_or_insert(missing);
        let counted = missing.wrapping_sub(before);
        // A difference below zero: more were made during the look than have ever been evicted.
        if counted < u64::MAX / 2 {
            self.counted = self.counted.max(counted);
        }
    }

    /// So many were removed by us.
    pub(crate) fn remove(&mut self, entries: u64) {
        self.removed += entries;
    }

    /// How many have been counted so far.
    pub(crate) fn counted(&self) -> u64 {
        self.counted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn pair(port: u16, begun: u64, touched: u64) -> [(TupleKey, Translation); 2] {
        let request = TupleKey { source_port: port.into(), protocol: 17, ..TupleKey::default() };
        let becomes = TupleKey { domain: 9, destination_port: 80.into(), ..request };
        let half = |becomes, flags| Translation {
            becomes,
            shown: Shown::SENT.0,
            touched,
            begun,
            packets: 7,
            bytes: 700,
            holder: 0,
            flags,
            acknowledged: 0,
            end: 0,
        };
        [(request, half(becomes, TRANSLATION_OPENER)), (becomes.reversed(9), half(request.reversed(0), 0))]
    }

    #[test]
    fn a_live_connection_stays_and_one_that_is_over_goes_with_both_halves() {
        let now = 1_000 * SECOND;
        let flows: Flows =
            pair(1, 0, now - SECOND).into_iter().chain(pair(2, 0, now - 301 * SECOND)).collect();
        let gone = stale(&flows, now, |_| true);
        assert_eq!(gone.len(), 2, "{gone:?}");
        assert!(pair(2, 0, 0).iter().all(|(key, _)| gone.contains(key)));
        assert_eq!(connections(&flows).count(), 2);
    }

    #[test]
    fn without_its_mapping_a_connection_goes() {
        let now = 1_000 * SECOND;
        for begun in [0, now - SECOND] {
            let flows: Flows = pair(1, begun, now).into();
            assert_eq!(stale(&flows, now, |_| false).len(), 2, "however young it is");
        }
    }

    #[test]
    fn a_half_that_is_left_over_goes_unless_the_other_may_be_on_its_way() {
        let now = 1_000 * SECOND;
        let [(key, half), _] = pair(1, 10 * SECOND, now);
        assert_eq!(stale(&Flows::from([(key, half)]), now, |_| true), [key]);
        let young = Translation { begun: now - SECOND, ..half };
        assert_eq!(stale(&Flows::from([(key, young)]), now, |_| true), []);
        let [_, (other_key, other)] = pair(1, 20 * SECOND, now);
        let mixed = Flows::from([(key, half), (other_key, other)]);
        assert_eq!(stale(&mixed, now, |_| true).len(), 2, "halves of two connections are none");
    }

    #[test]
    fn what_was_made_and_is_neither_there_nor_swept_was_evicted() {
        let mut evictions = Evictions::default();
        let mut counted = |made, present, swept| {
            evictions.see(made, present);
            evictions.remove(swept);
            evictions.counted()
        };
        assert_eq!(counted(100, 60, 10), 0, "of what was before nobody knows");
        assert_eq!(counted(100, 50, 0), 0, "we have swept them");
        assert_eq!(counted(120, 67, 0), 3);
        assert_eq!(counted(120, 80, 0), 3, "some were made during the look");
        assert_eq!(counted(130, 60, 0), 20);
    }

    #[test]
    fn what_remains_of_a_connections_time_is_told() {
        let flows: Flows = pair(1, 0, 100 * SECOND).into();
        let connection = connections(&flows).next().unwrap();
        assert_eq!(connection.remaining(160 * SECOND), Duration::from_secs(60));
        assert_eq!(connection.remaining(900 * SECOND), Duration::ZERO);
    }
}

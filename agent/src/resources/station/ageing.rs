//! Selects the learned stations to remove: expired ones, and the oldest of an uplink with too many.

use std::collections::BTreeMap;

use shunt_dataplane::abi::StationKey;
use shunt_dataplane::abi::learning::{Learned, MAX_HELD};
use shunt_dataplane::stages::learn;

/// The number of stations above which an uplink's stations are evicted.
pub(super) const CROWDED: usize = (MAX_HELD - MAX_HELD / 8) as usize;

/// How many it then keeps.
pub(super) const KEPT: usize = (MAX_HELD - MAX_HELD / 4) as usize;

/// The stations to remove at `now` (`CLOCK_BOOTTIME`, in nanoseconds). A bridge in `ageing` has its own,
/// shorter ageing time, in nanoseconds.
pub(super) fn stale(
    stations: &[(StationKey, Learned)],
    now: u64,
    ageing: &BTreeMap<u32, u64>,
) -> Vec<StationKey> {
    let mut gone = Vec::new();
    let mut held: BTreeMap<u32, Vec<(u64, StationKey)>> = BTreeMap::new();
    for (key, learned) in stations {
        let is_hasty = ageing.get(&key.bridge).is_some_and(|age| now.saturating_sub(learned.seen) >= *age);
        if learn::is_known(learned, now) && !is_hasty {
            held.entry(learned.station.ifindex).or_default().push((learned.seen, *key));
        } else {
            gone.push(*key);
        }
    }
    for mut stations in held.into_values().filter(|stations| stations.len() > CROWDED) {
        stations.sort_unstable();
        let surplus = stations.len() - KEPT;
        gone.extend(stations.into_iter().take(surplus).map(|(_, key)| key));
    }
    gone
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;
    use shunt_dataplane::abi::Station;
    use shunt_dataplane::abi::learning::AGEING;
    use shunt_dataplane::wire::address::Mac;

    use super::*;

    fn station(number: u32, uplink: u32, seen: u64) -> (StationKey, Learned) {
        let [a, b, c, d] = number.to_be_bytes();
        let key = StationKey { bridge: 1, vid: 0, mac: Mac::new([2, 0, a, b, c, d]) };
        let station = Station { ifindex: uplink, ..Station::default() };
        (key, Learned { station, seen, ..Learned::default() })
    }

    proptest! {
        #[test]
        fn a_station_stays_until_it_was_not_heard_for_long(
            ages in prop::collection::vec(0..2 * AGEING, 0..200),
            now in 2 * AGEING..1 << 60,
        ) {
            let stations: Vec<_> =
                (0..).zip(&ages).map(|(number, age)| station(number, 7, now - age)).collect();
            let gone: HashSet<_> = stale(&stations, now, &BTreeMap::new()).into_iter().collect();
            for ((key, _), age) in stations.iter().zip(&ages) {
                prop_assert_eq!(gone.contains(key), *age >= AGEING);
            }
        }

        #[test]
        fn the_oldest_of_a_crowded_uplink_go_and_no_other_uplinks(
            extra in 1..2_000_usize,
            others in 0..500_u32,
        ) {
            let count = CROWDED + extra;
            let now = 2 * AGEING;
            let seen = |number: u32| now - AGEING / 2 + u64::from(number);
            let crowd = (0..count as u32).map(|number| station(number, 7, seen(number)));
            let quiet = (0..others).map(|number| station(1 << 30 | number, 8, now - AGEING + 1));
            let stations: Vec<_> = crowd.chain(quiet).collect();
            let gone: HashSet<_> = stale(&stations, now, &BTreeMap::new()).into_iter().collect();
            for (number, (key, _)) in stations.iter().enumerate() {
                prop_assert_eq!(gone.contains(key), number < count - KEPT);
            }
        }
    }
}

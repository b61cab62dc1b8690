//! One sweep of `KERNEL_FLOWS`: what conntrack has forgotten goes, and each container's number is corrected.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use aya::maps::{Array, HashMap as BpfHashMap, Map, MapData, MapError};
use shunt_dataplane::abi::{FlowKey, KernelFlow, KernelShare, MAX_KERNEL_FLOWS, NO_SLOT};
use shunt_netlink::NetlinkError;
use shunt_netlink::conntrack::{TrackedConnection, tracked_connections};

use super::owners::Owners;
use crate::resources::clock::boot_time;
use crate::resources::connection::drift;

/// Update flag: only where there is no entry (`BPF_NOEXIST`, linux/bpf.h).
const NOEXIST: u64 = 1;

/// A younger entry may be of a connection that conntrack has not confirmed yet, in nanoseconds.
const YOUNG: u64 = 10_000_000_000;

/// Why nothing was swept.
#[derive(Debug, thiserror::Error)]
pub(super) enum SweepError {
    #[error(transparent)]
    Map(#[from] MapError),
    #[error("the connections of conntrack: {0}")]
    Conntrack(#[from] NetlinkError),
}

/// A container that had no room for a flow, by its counter slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Apart {
    pub(super) slot: u32,
    /// Its host end: a slot may be another one's soon.
    pub(super) host: u32,
    /// How many it had no room for.
    pub(super) refused: u64,
}

/// Both maps, by descriptors of their own.
struct Maps {
    flows: BpfHashMap<MapData, FlowKey, KernelFlow>,
    shares: Array<MapData, KernelShare>,
}

/// Sweeps. Returns which of those `apart` have all of their flows recorded now.
///
/// # Errors
/// The kernel's.
pub(super) fn sweep(
    pin: impl Fn(&str) -> PathBuf,
    owners: &Owners,
    slots: &[u32],
    apart: &[Apart],
) -> Result<Vec<Apart>, SweepError> {
    let flows = Map::LruHashMap(MapData::from_pin(pin("KERNEL_FLOWS"))?);
    let shares = Map::Array(MapData::from_pin(pin("KERNEL_SHARES"))?);
    let mut maps = Maps { flows: BpfHashMap::try_from(flows)?, shares: Array::try_from(shares)? };

    let before = maps.counts(slots)?;
    let mut entries = maps.entries()?;
    let living = match entries.is_empty() {
        true => HashMap::new(),
        false => owners.flows(&tracked()?),
    };
    let gone = gone(&entries, &living, boot_time());
    maps.remove(&gone)?;
    entries.retain(|flow, _| !gone.contains(flow));
    maps.correct(&before, &count(&entries, &living, owners))?;
    if gone.is_empty() && apart.is_empty() {
        return Ok(Vec::new());
    }
    // A connection with the tuple of one that was gone may have begun meanwhile.
    let again = owners.flows(&tracked()?);
    let mut wanted: HashMap<_, _> = again.iter().filter(|(flow, _)| gone.contains(flow)).collect();
    let mut back = Vec::new();
    for apart in apart {
        if maps.have_room(again.values().filter(|slot| **slot == Some(apart.slot)).count())? {
            // Also what others have begun with it: nobody has recorded that.
            let is_its = |flow: &FlowKey| owners.slots(flow).any(|slot| slot == apart.slot);
            wanted.extend(again.iter().filter(|(flow, _)| is_its(flow)));
            back.push(*apart);
        }
    }
    maps.record(&wanted)?;
    Ok(back)
}

/// The connections of conntrack; none where the kernel has none.
fn tracked() -> Result<Vec<TrackedConnection>, NetlinkError> {
    if Path::new("/proc/sys/net/netfilter/nf_conntrack_max").exists() {
        tracked_connections()
    } else {
        Ok(Vec::new())
    }
}

/// The entries that conntrack has forgotten.
fn gone(
    entries: &HashMap<FlowKey, KernelFlow>,
    living: &HashMap<FlowKey, Option<u32>>,
    now: u64,
) -> HashSet<FlowKey> {
    let is_old = |entry: &KernelFlow| now.saturating_sub(entry.noticed) > YOUNG;
    let gone = entries.iter().filter(|(flow, entry)| is_old(entry) && !living.contains_key(flow));
    gone.map(|(flow, _)| *flow).collect()
}

/// How many entries each container pays for, and in [`NO_SLOT`] all of them. Those that conntrack does not have may be of either end's; for what
/// outsiders have begun nobody pays: the programs record none of it.
fn count(
    found: &HashMap<FlowKey, KernelFlow>,
    living: &HashMap<FlowKey, Option<u32>>,
    owners: &Owners,
) -> HashMap<u32, i64> {
    let mut counts = HashMap::from([(NO_SLOT, 0)]);
    for flow in found.keys() {
        let payers: HashSet<u32> = match living.get(flow) {
            Some(slot) => slot.iter().copied().collect(),
            None => owners.slots(flow).chain([NO_SLOT]).collect(),
        };
        let is_paid_for = !payers.is_empty();
        payers
            .iter()
            .filter(|slot| **slot != NO_SLOT)
            .for_each(|slot| *counts.entry(*slot).or_default() += 1);
        *counts.entry(NO_SLOT).or_default() += i64::from(is_paid_for);
    }
    counts
}

impl Maps {
    fn entries(&self) -> Result<HashMap<FlowKey, KernelFlow>, MapError> {
        // Programs that change the map may lead a walk back to its beginning.
        self.flows.iter().take(2 * MAX_KERNEL_FLOWS as usize).collect()
    }

    fn counts(&self, slots: &[u32]) -> Result<HashMap<u32, i64>, MapError> {
        let all = slots.iter().chain(&[NO_SLOT]);
        all.map(|slot| Ok((*slot, self.shares.get(slot, 0)?.flows))).collect()
    }

    /// Corrects the counts by what is left of what was found.
    fn correct(&mut self, before: &HashMap<u32, i64>, found: &HashMap<u32, i64>) -> Result<(), MapError> {
        for (slot, before) in before {
            let now = self.shares.get(slot, 0)?.flows;
            self.add(*slot, -drift([*before, now], found.get(slot).copied().unwrap_or_default()))?;
        }
        Ok(())
    }

    fn remove(&mut self, gone: &HashSet<FlowKey>) -> Result<(), MapError> {
        for flow in gone {
            match self.flows.remove(flow) {
                Ok(()) | Err(MapError::KeyNotFound) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Records flows that are not there, and counts them.
    fn record(&mut self, flows: &HashMap<&FlowKey, &Option<u32>>) -> Result<(), MapError> {
        let noticed = boot_time();
        let mut added: HashMap<u32, i64> = HashMap::new();
        for (flow, slot) in flows {
            let is_new = self.flows.get(flow, 0).is_err()
                && self.flows.insert(**flow, KernelFlow { noticed }, NOEXIST).is_ok();
            if let (true, Some(slot)) = (is_new, slot) {
                *added.entry(*slot).or_default() += 1;
            }
        }
        self.add(NO_SLOT, added.values().sum())?;
        added.into_iter().try_for_each(|(slot, added)| self.add(slot, added))
    }

    /// Whether a container with so many flows has room for them, and for a quarter more: else it would not be long before it is apart again.
    fn have_room(&self, flows: usize) -> Result<bool, MapError> {
        let all = self.shares.get(&NO_SLOT, 0)?;
        let own = KernelShare { flows: (flows + flows / 4) as i64, ..KernelShare::default() };
        Ok(own.has_room(&all))
    }

    /// Adds to a count. What the programs add at the same moment may be lost: the next sweep corrects that.
    fn add(&mut self, slot: u32, flows: i64) -> Result<(), MapError> {
        if flows == 0 {
            return Ok(());
        }
        let share = self.shares.get(&slot, 0)?;
        self.shares.set(slot, KernelShare { flows: share.flows + flows, ..share }, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_is_paid_for_by_who_has_begun_it_and_counts_once_among_all() {
        let flow = |port: u16| FlowKey { low_port: port.into(), ..FlowKey::default() };
        let found = HashMap::from([1, 2, 3].map(|port| (flow(port), KernelFlow::default())));
        let living = HashMap::from([(flow(1), Some(5)), (flow(2), None), (flow(9), Some(6))]);
        let counts = count(&found, &living, &Owners::default());
        assert_eq!(counts, HashMap::from([(NO_SLOT, 2), (5, 1)]), "nobody pays for what began outside");
    }

    #[test]
    fn what_conntrack_has_forgotten_goes_unless_it_is_young() {
        let flow = |port: u16| FlowKey { low_port: port.into(), ..FlowKey::default() };
        let entries =
            [(1, 0), (2, 0), (3, 5 * YOUNG)].map(|(port, noticed)| (flow(port), KernelFlow { noticed }));
        let living = HashMap::from([(flow(2), Some(5))]);
        assert_eq!(gone(&HashMap::from(entries), &living, 5 * YOUNG + 1), HashSet::from([flow(1)]));
    }
}

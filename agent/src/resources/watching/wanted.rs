//! What watchers want, as the programs are told it.

use std::collections::HashSet;

use shunt_dataplane::abi::watch::{MAX_WATCHED_PORTS, WATCH_INTERVAL, Watch};

use super::asked;
use super::watcher::Watcher;

const SECOND: u64 = 1_000_000_000;

/// What all together want.
pub(super) fn of(watchers: &[Watcher]) -> Watch {
    let requests = || watchers.iter().map(|watcher| &watcher.request);
    let rate = requests().map(|request| request.rate).max().unwrap_or_default();
    let most = (u64::from(rate) * WATCH_INTERVAL).div_ceil(SECOND);
    Watch {
        verdicts: requests().fold(0, |bits, request| bits | asked::verdicts(request)),
        snap: requests().map(|request| request.snap).max().unwrap_or_default(),
        most: u32::try_from(most).unwrap_or(u32::MAX),
        only_some: u32::from(is_for_some(watchers)),
    }
}

/// The interfaces that the programs are told, where they are for some only.
pub(super) fn ports(watchers: &[Watcher]) -> HashSet<u32> {
    if !is_for_some(watchers) {
        return HashSet::new();
    }
    watchers.iter().flat_map(|watcher| watcher.ports.iter().copied()).collect()
}

fn is_for_some(watchers: &[Watcher]) -> bool {
    let wanted: usize = watchers.iter().map(|watcher| watcher.ports.len()).sum();
    // The reader picks out as well.
    wanted <= MAX_WATCHED_PORTS as usize && watchers.iter().all(|watcher| !watcher.request.ports.is_empty())
}

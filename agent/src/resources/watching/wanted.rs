//! What watchers want, as the programs are told it.

use std::collections::HashSet;

use shunt_agent_api::WatchRequest;
use shunt_dataplane::abi::watch::{
    MAX_SNAP, MAX_WATCHED_PORTS, VERDICT_BACK, VERDICT_DROP, VERDICT_PASS, WATCH_INTERVAL, Watch,
};

use super::watcher::Watcher;
use crate::resources::Refusal;

const SECOND: u64 = 1_000_000_000;

/// Refuses what makes no sense.
///
/// # Errors
/// [`Refusal::Malformed`].
pub(super) fn check(request: &WatchRequest) -> Result<(), Refusal> {
    let malformed =
        |field, value: u32, reason| Err(Refusal::Malformed { field, value: value.to_string(), reason });
    match request {
        WatchRequest { snap, .. } if *snap > MAX_SNAP => malformed("snap", *snap, "at most 16384 bytes"),
        WatchRequest { rate: 0, .. } => malformed("rate", 0, "at least 1 packet a second"),
        WatchRequest { dropped: false, delivered: false, passed: false, .. } => {
            malformed("dropped, delivered, passed", 0, "one of them")
        }
        _ => Ok(()),
    }
}

/// Whether packets are wanted that are not dropped.
pub(super) const fn captures(request: &WatchRequest) -> bool {
    request.delivered || request.passed
}

/// A bit for each verdict that is wanted.
pub(super) const fn verdicts(request: &WatchRequest) -> u32 {
    const DROPPED: u32 = 1 << VERDICT_DROP | 1 << VERDICT_BACK;
    const PASSED: u32 = 1 << VERDICT_PASS;
    let dropped = if request.dropped { DROPPED } else { 0 };
    let passed = if request.passed { PASSED } else { 0 };
    dropped | passed | if request.delivered { !(DROPPED | PASSED) } else { 0 }
}

/// What all together want.
pub(super) fn of(watchers: &[Watcher]) -> Watch {
    let requests = || watchers.iter().map(|watcher| &watcher.request);
    let rate = requests().map(|request| request.rate).max().unwrap_or_default();
    let most = (u64::from(rate) * WATCH_INTERVAL).div_ceil(SECOND);
    Watch {
        verdicts: requests().fold(0, |bits, request| bits | verdicts(request)),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_verdict_is_of_one_kind() {
        let only = |dropped, delivered, passed| {
            verdicts(&WatchRequest { dropped, delivered, passed, ..WatchRequest::default() })
        };
        let kinds = [only(true, false, false), only(false, true, false), only(false, false, true)];
        assert_eq!(kinds[0] | kinds[1] | kinds[2], u32::MAX);
        assert_eq!(kinds.map(u32::count_ones).iter().sum::<u32>(), 32);
        assert_eq!(only(true, true, true), u32::MAX);
    }
}

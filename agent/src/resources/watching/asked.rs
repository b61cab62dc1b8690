//! What one watcher asks for.

use shunt_agent_api::WatchRequest;
use shunt_dataplane::abi::watch::{MAX_SNAP, VERDICT_BACK, VERDICT_DROP, VERDICT_PASS};

use crate::resources::Refusal;

/// Refuses what makes no sense.
///
/// # Errors
/// [`Refusal::Malformed`].
pub(super) fn check(request: &WatchRequest) -> Result<(), Refusal> {
    let malformed =
        |field, value: u32, reason| Err(Refusal::Malformed { field, value: value.to_string(), reason });
    match request {
        WatchRequest { snap, .. } if *snap > MAX_SNAP => malformed("snap", *snap, "at most 16384 bytes"),
        WatchRequest { snap: 0, .. } => malformed("snap", 0, "at least 1 byte"),
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

    #[test]
    fn what_makes_no_sense_is_refused() {
        let good = WatchRequest { dropped: true, snap: MAX_SNAP, rate: 1, ..WatchRequest::default() };
        check(&good).unwrap();
        for bad in [
            WatchRequest { snap: 0, ..good.clone() },
            WatchRequest { snap: MAX_SNAP + 1, ..good.clone() },
            WatchRequest { rate: 0, ..good.clone() },
            WatchRequest { dropped: false, ..good.clone() },
        ] {
            assert!(matches!(check(&bad), Err(Refusal::Malformed { .. })), "{bad:?}");
        }
    }
}

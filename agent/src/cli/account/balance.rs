//! Whether a port's packets add up.
//!
//! The kernel's counter is read between two readings of the programs'. It has to lie between them: what it is beyond either is missing.

use std::collections::BTreeMap;

use serde::Serialize;
use shunt_agent_api::{AccountReport, Counted, DropCount, Traffic};

/// Whose account it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key([String; 3]);

impl Key {
    pub(super) fn of(report: &AccountReport) -> Self {
        Self([&report.network, &report.container, &report.ifname].map(String::clone))
    }
}

/// One port's packets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Account {
    pub(super) network: String,
    pub(super) container: String,
    pub(super) ifname: String,
    pub(super) host_ifname: String,
    /// What the container sent.
    pub(super) from: Direction,
    /// What the container was sent. Only the programs count what comes in.
    pub(super) to: Direction,
    /// What of both was dropped, by reason.
    pub(super) drops: Vec<DropCount>,
    /// What was counted while it was read: as much may be missing unnoticed.
    pub(super) moving: u64,
    pub(super) unaccounted: Unaccounted,
}

/// One direction of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Direction {
    /// What came in.
    #[serde(rename = "in")]
    pub(super) arrived: u64,
    /// By the fast path.
    pub(super) delivered: u64,
    /// To the kernel.
    pub(super) passed: u64,
    pub(super) dropped: u64,
}

/// What does not add up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Unaccounted {
    /// Packets that came in from the container and were neither delivered nor passed nor dropped; below zero: more of them than came.
    pub(super) packets: i64,
    /// Dropped packets without a reason; below zero: more reasons than drops.
    pub(super) drops: i64,
}

impl Account {
    /// The account of all that a report has, or of what has come since an earlier one.
    pub(super) fn of(report: &AccountReport, earlier: Option<&AccountReport>) -> Self {
        let now = Reading::of(report);
        let reading = match earlier {
            Some(earlier) => now.since(&Reading::of(earlier)),
            None => now,
        };
        let reasons: u64 = reading.drops.values().sum();
        let counted = reading.counted;
        let packets = reading.arrived.map(|arrived| beyond(arrived, counted)).unwrap_or_default();
        let of_reasons = beyond(reasons, reading.dropped).saturating_neg();
        Self {
            network: report.network.clone(),
            container: report.container.clone(),
            ifname: report.ifname.clone(),
            host_ifname: report.host_ifname.clone(),
            from: Direction::of(reading.from, reading.arrived),
            to: Direction::of(reading.to, None),
            drops: reading
                .drops
                .into_iter()
                .filter(|(_, packets)| *packets > 0)
                .map(|(reason, packets)| DropCount { reason, packets })
                .collect(),
            moving: counted.1.saturating_sub(counted.0),
            unaccounted: Unaccounted { packets, drops: of_reasons },
        }
    }

    pub(super) fn is_balanced(&self) -> bool {
        self.unaccounted == Unaccounted::default()
    }
}

impl Direction {
    fn of(traffic: Traffic, arrived: Option<u64>) -> Self {
        let Traffic { fast: delivered, kernel: passed, dropped, .. } = traffic;
        Self { arrived: arrived.unwrap_or(delivered + passed + dropped), delivered, passed, dropped }
    }
}

/// What is compared, of one moment or of the time between two.
#[derive(Debug)]
struct Reading {
    from: Traffic,
    to: Traffic,
    arrived: Option<u64>,
    drops: BTreeMap<String, u64>,
    /// At least and at most so many packets from the container were counted when `arrived` was read.
    counted: (u64, u64),
    /// The same of dropped ones, when `drops` was read.
    dropped: (u64, u64),
}

impl Reading {
    fn of(report: &AccountReport) -> Self {
        let AccountReport { before, after, .. } = report;
        let counted = |Counted { from, .. }: &Counted| from.fast + from.kernel + from.dropped;
        let dropped = |Counted { from, to }: &Counted| from.dropped + to.dropped;
        Self {
            from: after.from,
            to: after.to,
            arrived: report.arrived,
            drops: report.drops.iter().map(|drop| (drop.reason.clone(), drop.packets)).collect(),
            counted: (counted(before), counted(after)),
            dropped: (dropped(before), dropped(after)),
        }
    }

    fn since(self, earlier: &Self) -> Self {
        let of_reason = |reason: &String| earlier.drops.get(reason).copied().unwrap_or_default();
        let since = |(reason, packets): (String, u64)| {
            let before = of_reason(&reason);
            (reason, packets.saturating_sub(before))
        };
        Self {
            from: difference(self.from, earlier.from),
            to: difference(self.to, earlier.to),
            arrived: self.arrived.zip(earlier.arrived).map(|(now, then)| now.saturating_sub(then)),
            drops: self.drops.into_iter().map(since).collect(),
            counted: between(self.counted, earlier.counted),
            dropped: between(self.dropped, earlier.dropped),
        }
    }
}

/// The least and the most that has come between two moments, of each of which the least and the most is known.
fn between(now: (u64, u64), then: (u64, u64)) -> (u64, u64) {
    (now.0.saturating_sub(then.1), now.1.saturating_sub(then.0))
}

fn difference(now: Traffic, then: Traffic) -> Traffic {
    Traffic {
        packets: now.packets.saturating_sub(then.packets),
        bytes: now.bytes.saturating_sub(then.bytes),
        fast: now.fast.saturating_sub(then.fast),
        kernel: now.kernel.saturating_sub(then.kernel),
        dropped: now.dropped.saturating_sub(then.dropped),
    }
}

/// By how much a number is above the most, or below the least.
fn beyond(number: u64, (least, most): (u64, u64)) -> i64 {
    let signed = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    if number > most { signed(number - most) } else { signed(least.saturating_sub(number)).saturating_neg() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn traffic(fast: u64, kernel: u64, dropped: u64) -> Traffic {
        Traffic { packets: fast + kernel, bytes: 0, fast, kernel, dropped }
    }

    fn report(before: Traffic, arrived: u64, reasons: &[(&str, u64)], after: Traffic) -> AccountReport {
        let of = |from| Counted { from, to: traffic(1, 1, 1) };
        AccountReport {
            network: "net".into(),
            container: "c".into(),
            ifname: "eth0".into(),
            host_ifname: "veth0".into(),
            before: of(before),
            arrived: Some(arrived),
            drops: reasons
                .iter()
                .map(|(reason, packets)| DropCount { reason: (*reason).into(), packets: *packets })
                .collect(),
            after: of(after),
        }
    }

    #[test]
    fn what_came_in_is_delivered_passed_or_dropped_by_reason() {
        let at_rest = traffic(5, 3, 2);
        let account = Account::of(&report(at_rest, 10, &[("isolated", 2), ("hairpin", 1)], at_rest), None);
        assert!(account.is_balanced() && account.moving == 0, "{account:?}");
        assert_eq!(account.from, Direction { arrived: 10, delivered: 5, passed: 3, dropped: 2 });
        assert_eq!(account.to.arrived, 3);
    }

    #[test]
    fn what_is_missing_is_told_with_its_sign() {
        let at_rest = traffic(5, 3, 2);
        let unaccounted = |arrived, reasons: &[(&str, u64)]| {
            Account::of(&report(at_rest, arrived, reasons, at_rest), None).unaccounted
        };
        assert_eq!(unaccounted(13, &[("isolated", 3)]), Unaccounted { packets: 3, drops: 0 });
        assert_eq!(unaccounted(9, &[("isolated", 1)]), Unaccounted { packets: -1, drops: 2 });
        assert_eq!(unaccounted(10, &[("isolated", 4)]), Unaccounted { packets: 0, drops: -1 });
    }

    #[test]
    fn packets_on_their_way_between_two_readings_are_not_missing_and_what_may_hide_is_told() {
        let moved = Account::of(&report(traffic(5, 3, 1), 12, &[("isolated", 3)], traffic(9, 3, 2)), None);
        assert!(moved.is_balanced(), "{moved:?}");
        assert_eq!(moved.moving, 5);
        let missing = Account::of(&report(traffic(5, 3, 2), 15, &[("isolated", 3)], traffic(9, 3, 2)), None);
        assert_eq!(missing.unaccounted.packets, 1);
    }

    #[test]
    fn what_came_before_the_programs_is_of_no_account_in_a_span_of_time() {
        let (then, now) = (traffic(5, 3, 2), traffic(8, 4, 2));
        let reasons = [("isolated", 3)];
        let (then, now) = (report(then, 1_000, &reasons, then), report(now, 1_004, &reasons, now));
        assert_eq!(Account::of(&now, None).unaccounted.packets, 990);
        let since = Account::of(&now, Some(&then));
        assert!(since.is_balanced() && since.drops.is_empty(), "{since:?}");
        assert_eq!(since.from, Direction { arrived: 4, delivered: 3, passed: 1, dropped: 0 });
    }
}

//! Queues (NFQUEUE by iptables), with a reader that accepts, one that refuses, and none.

use super::FLUSH;
use crate::queue::Verdict;
use crate::trial::RuleSet;

/// What is new is asked for, what is established is let through before.
macro_rules! new_by_queue {
    ($kind:literal, $options:literal) => {
        concat!(
            "IPT=",
            $kind,
            "; both -A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
            both -A FORWARD -p tcp --dport 7000 -m conntrack --ctstate NEW -j NFQUEUE --queue-num 7 ",
            $options,
            "
            both -A FORWARD -p udp --dport 7000 -m conntrack --ctstate NEW -j NFQUEUE --queue-num 7 ",
            $options
        )
    };
}

macro_rules! all_by_queue {
    ($kind:literal, $options:literal) => {
        concat!("IPT=", $kind, "; both -A FORWARD -p udp -j NFQUEUE --queue-num 7 ", $options)
    };
}

const LEGACY_FLUSH: &str = "IPT=legacy; both -F FORWARD";

pub(crate) const SETS: &[RuleSet] = &[
    RuleSet::fast("a queue of what is new, accepted", new_by_queue!("nft", ""), &[FLUSH])
        .read_by(Verdict::Accept),
    RuleSet::fast("a queue of what is new, refused", new_by_queue!("nft", ""), &[FLUSH])
        .read_by(Verdict::Refuse),
    RuleSet::fast("a queue of what is new, not read", new_by_queue!("nft", ""), &[FLUSH]),
    RuleSet::fast(
        "a queue of what is new, not read and passed by",
        new_by_queue!("nft", "--queue-bypass"),
        &[FLUSH],
    ),
    RuleSet::kept("a queue of everything, accepted", all_by_queue!("nft", ""), &[FLUSH])
        .read_by(Verdict::Accept),
    RuleSet::kept("a queue of everything, refused", all_by_queue!("nft", ""), &[FLUSH])
        .read_by(Verdict::Refuse),
    RuleSet::kept("a queue of everything, not read", all_by_queue!("nft", ""), &[FLUSH]),
    RuleSet::kept(
        "a queue of everything, not read and passed by",
        all_by_queue!("nft", "--queue-bypass"),
        &[FLUSH],
    ),
    RuleSet::fast("legacy: a queue of what is new, accepted", new_by_queue!("legacy", ""), &[LEGACY_FLUSH])
        .read_by(Verdict::Accept),
    RuleSet::fast("legacy: a queue of what is new, refused", new_by_queue!("legacy", ""), &[LEGACY_FLUSH])
        .read_by(Verdict::Refuse),
    RuleSet::any("legacy: a queue of everything, accepted", all_by_queue!("legacy", ""), &[LEGACY_FLUSH])
        .read_by(Verdict::Accept),
    RuleSet::any("legacy: a queue of everything, not read", all_by_queue!("legacy", ""), &[LEGACY_FLUSH]),
];

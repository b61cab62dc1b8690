//! The rule sets, by kind. Scripts are a shell's; `@one4`, `@one6` and `@one` are a container's addresses and its interface in the node.

#[path = "rules/bridge.rs"]
pub(crate) mod bridge;
#[path = "rules/engines.rs"]
pub(crate) mod engines;
#[path = "rules/iptables.rs"]
pub(crate) mod iptables;
#[path = "rules/judging.rs"]
pub(crate) mod judging;
#[path = "rules/published.rs"]
pub(crate) mod published;
#[path = "rules/queues.rs"]
pub(crate) mod queues;
#[path = "rules/shapes.rs"]
pub(crate) mod shapes;
#[path = "rules/states.rs"]
pub(crate) mod states;
#[path = "rules/sudden.rs"]
pub(crate) mod sudden;
#[path = "rules/ways.rs"]
pub(crate) mod ways;
#[path = "rules/who.rs"]
pub(crate) mod who;

/// One transaction of nf_tables.
macro_rules! nft {
    ($($text:expr),+) => { concat!("nft -f - <<'END'\n", $($text),+, "\nEND\n") };
}
pub(crate) use nft;

/// A chain of the family `inet` at the hook for what is forwarded, with this policy.
macro_rules! forward {
    ($policy:literal, $($rule:literal),+) => {
        $crate::rules::nft!("table inet engine { chain forward { type filter hook forward priority 0; policy ",
            $policy, ";\n", $($rule, "\n"),+, "}; }")
    };
}
pub(crate) use forward;

pub(crate) const FLUSH: &str = "nft flush ruleset";

/// All of UDP and of TCP is refused, whatever else there is.
pub(crate) const LATE_DROP: &str = nft!(
    "table inet late { chain forward { type filter hook forward priority -10; meta l4proto { tcp, udp } drop; }; }"
);

pub(crate) const LATE_DROP_ENDS: &str = "nft delete table inet late";

/// What is established is refused, and all that is new is let through.
pub(crate) const REPLACED: &str = nft!(
    "flush ruleset\n",
    "table inet other { chain forward { type filter hook forward priority 0; ct state established meta l4proto udp drop; }; }"
);

/// Another rule set in place of all, and the chain again that lets nothing new through but what is established.
const ESTABLISHED_ONLY: &str = nft!(
    "flush ruleset\n",
    "table inet other { chain forward { type filter hook forward priority 0; policy drop; ct state established,related accept; }; }"
);

/// A rule for each packet, before all others.
const JUDGED: &str = nft!(
    "table inet judge { chain forward { type filter hook forward priority -20; meta length 60 drop; }; }"
);

/// Changes that any rule set may see.
pub(crate) const CHANGES: &[&str] = &[
    LATE_DROP,
    LATE_DROP_ENDS,
    JUDGED,
    "nft delete table inet judge",
    ESTABLISHED_ONLY,
    REPLACED,
    FLUSH,
    ESTABLISHED_ONLY,
];

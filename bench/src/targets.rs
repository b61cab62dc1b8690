//! What the figures should be, and why one that is not is not. A target is met by a claim: the worse end of the interval.

use crate::comparison::Comparison;

/// How a ratio should be.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Bound {
    AtMost(f64),
    AtLeast(f64),
}
use Bound::{AtLeast, AtMost};

/// One row of a comparison to another.
struct Target {
    comparison: &'static str,
    row: &'static str,
    to: &'static str,
    bound: Bound,
    /// What keeps it from the bound where it is not met.
    why: &'static str,
}

const fn target(
    comparison: &'static str,
    [row, to]: [&'static str; 2],
    bound: Bound,
    why: &'static str,
) -> Target {
    Target { comparison, row, to, bound, why }
}

const LOOK_UPS: &str = "a program without look-ups, which only redirects, is at 1.03×; what is above that are four look-ups and \
    two counters (the record of `ebpf/stepper`)";
const LONGER_PATH: &str =
    "a packet to a container that is on the same CPU pays the program and the queue of the peer (netif_rx)";
const OFFLOAD: &str =
    "segments are put together before they reach either path: it measures the socket and the copy";
const EXEC: &str = "a process, a veth pair, a bridge port and programs are most of it and the kernel's own, and the reference has \
    little more to do without ipMasq and host ports";
const MAPPED: &str = "translation is a look-up for each direction and a new entry for each connection; the rest of the path is \
    the same";
const QUEUES: &str = "both are token buckets of the kernel's, told the same burst";
const LIMITS: &str =
    "a queue on each end, one of them in the container's namespace, and the capacity's books";
const CHAIN: &str = "one exec, one request to the agent, no rules";
const NEIGHBOURS: &str = "the new container's IPv6 announces itself, and the bridge copies that to each of its 500 ports: 3 to 5 ms \
    of one of two processors, while it is the ADD's turn or its agent's; the ADD itself waits for no lock and reads no list that \
    grows (ftrace, perf; docs/performance.md)";

const TABLES: &str =
    "a look-up in a hash map takes no longer for more entries, but they are in no cache of the processor's";

const BY_THE_KERNEL: &str = "such a packet goes by the kernel as it does without shunt, and through five programs on its way: 0.95 µs by the \
    kernel's own count (run_time_ns), 0.55 of them in the two that translate (from_mapped, from_wire)";

const OPENED: &str = "the kernel opens such a connection by the hooks and the translation that the reference's has; above that are the \
    programs that pass its packets on and note them, and the agent that asks whether it lasts";
const CARRIED: &str = "the programs carry such a connection, but for one packet of each direction in a lease and what comes before \
    the agent has asked for it: both are the kernel's";

/// All of them.
const TARGETS: [Target; 44] = [
    target("rr", ["shunt", "bare-veth"], AtMost(1.06), LOOK_UPS),
    target("rr", ["shunt", "bridge-iptables"], AtMost(0.84), LOOK_UPS),
    target("crr", ["shunt", "bare-veth"], AtMost(1.06), LOOK_UPS),
    target("crr", ["shunt", "bridge-iptables"], AtMost(0.80), LOOK_UPS),
    target("udp", ["shunt", "bare-veth"], AtLeast(0.87), LONGER_PATH),
    target("udp", ["shunt", "bridge"], AtLeast(1.1), LONGER_PATH),
    target("udp", ["shunt", "bridge-iptables"], AtLeast(1.4), LONGER_PATH),
    target("stream-1", ["shunt", "bridge"], AtLeast(1.0), OFFLOAD),
    target("stream-8", ["shunt", "bridge"], AtLeast(1.0), OFFLOAD),
    target("host-port", ["shunt-1", "portmap-1"], AtMost(0.85), MAPPED),
    target("host-port", ["shunt-5000", "shunt-1"], AtMost(1.05), MAPPED),
    target("host-port", ["shunt-5000", "portmap-5000"], AtMost(0.60), MAPPED),
    target("host-port-add", ["shunt-5000", "shunt-1"], AtMost(1.2), CHAIN),
    target("add", ["shunt", "reference"], AtMost(0.20), EXEC),
    target("add-masquerade", ["shunt", "reference"], AtMost(0.20), EXEC),
    target("add-chain", ["shunt", "reference"], AtMost(0.12), CHAIN),
    target("del-chain", ["shunt", "reference"], AtMost(0.20), CHAIN),
    target("add-limited", ["limited", "unlimited"], AtMost(1.2), LIMITS),
    target("limits", ["shunt", "reference"], AtLeast(0.99), QUEUES),
    target("limits-delay", ["shunt", "reference"], AtMost(1.0), QUEUES),
    target("add-crowded", ["shunt-1000", "shunt-0"], AtMost(1.2), NEIGHBOURS),
    target("del-crowded", ["shunt-1000", "shunt-0"], AtMost(1.5), NEIGHBOURS),
    target("rr-crowded", ["shunt-1000", "shunt-2"], AtMost(1.03), TABLES),
    target("udp-crowded", ["shunt-1000", "shunt-2"], AtLeast(0.971), TABLES),
    target("rr-routes", ["shunt", "kernel-masquerade"], AtMost(1.031), BY_THE_KERNEL),
    target("udp-rr-routes", ["shunt", "kernel-masquerade"], AtMost(1.031), BY_THE_KERNEL),
    target("udp-routes", ["shunt", "kernel-masquerade"], AtLeast(0.97), BY_THE_KERNEL),
    target("stream-1-routes", ["shunt", "kernel-masquerade"], AtLeast(0.97), BY_THE_KERNEL),
    target("rr-vxlan", ["shunt", "kernel-masquerade"], AtMost(1.111), BY_THE_KERNEL),
    target("udp-rr-vxlan", ["shunt", "kernel-masquerade"], AtMost(1.111), BY_THE_KERNEL),
    target("udp-vxlan", ["shunt", "kernel-masquerade"], AtLeast(0.90), BY_THE_KERNEL),
    target("stream-1-vxlan", ["shunt", "kernel-masquerade"], AtLeast(0.90), BY_THE_KERNEL),
    target("crr-heeded-host-port", ["shunt-ruled-1", "portmap-ruled-1"], AtMost(1.0), OPENED),
    target("crr-heeded-host-port", ["shunt-ruled-5000", "portmap-ruled-5000"], AtMost(1.0), OPENED),
    target("crr-heeded-host-port", ["shunt-ruled-5000", "shunt-ruled-1"], AtMost(1.05), OPENED),
    target("crr-heeded-host-port-p99", ["shunt-ruled-1", "portmap-ruled-1"], AtMost(1.05), OPENED),
    target("crr-heeded-host-port-p99", ["shunt-ruled-5000", "portmap-ruled-5000"], AtMost(1.05), OPENED),
    target("rr-heeded-host-port", ["shunt-ruled-1", "portmap-ruled-1"], AtMost(0.88), CARRIED),
    target("rr-heeded-host-port", ["shunt-ruled-5000", "portmap-ruled-5000"], AtMost(0.88), CARRIED),
    target("rr-heeded-host-port", ["shunt-ruled-5000", "shunt-ruled-1"], AtMost(1.05), CARRIED),
    target("stream-1-heeded-host-port", ["shunt-ruled-1", "portmap-ruled-1"], AtLeast(1.0), OFFLOAD),
    target("stream-back-heeded-host-port", ["shunt-ruled-1", "portmap-ruled-1"], AtLeast(1.0), OFFLOAD),
    target("stream-1-heeded-host-port", ["shunt-ruled-5000", "portmap-ruled-5000"], AtLeast(1.0), OFFLOAD),
    target("stream-back-heeded-host-port", ["shunt-ruled-5000", "portmap-ruled-5000"], AtLeast(1.0), OFFLOAD),
];

/// How a target fared.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Judgement {
    /// What was compared.
    pub(crate) title: String,
    /// The bound, as a person reads it.
    pub(crate) bound: String,
    /// The median of the ratio.
    pub(crate) median: f64,
    /// The worse end of its interval.
    pub(crate) claim: f64,
    /// How it stands.
    pub(crate) standing: Standing,
}

/// Whether a target is met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// By the worse end of the interval.
    Met,
    /// By the median only: another run may say otherwise.
    Median(&'static str),
    /// Not, and why.
    Missed(&'static str),
}

/// Every target that something was measured for.
pub(crate) fn judge(comparisons: &[Comparison]) -> Vec<Judgement> {
    TARGETS.iter().filter_map(|target| target.judge(comparisons)).collect()
}

impl Target {
    fn judge(&self, comparisons: &[Comparison]) -> Option<Judgement> {
        let comparison = comparisons.iter().find(|comparison| comparison.name == self.comparison)?;
        let (row, to) = (comparison.row(self.row)?, comparison.row(self.to)?);
        let ratio = row.ratios.get(self.to)?;
        let (claim, bound) = match self.bound {
            AtMost(bound) => (ratio.upper95, format!("≤ {bound:.2}×")),
            AtLeast(bound) => (ratio.lower95, format!("≥ {bound:.2}×")),
        };
        let keeps = |figure: f64| match self.bound {
            AtMost(bound) => figure <= bound,
            AtLeast(bound) => figure >= bound,
        };
        let standing = match (row.is_void(), keeps(claim), keeps(ratio.median)) {
            (true, ..) => Standing::Missed("too little of it took the fast path"),
            (_, true, _) => Standing::Met,
            (_, _, true) => Standing::Median(self.why),
            _ => Standing::Missed(self.why),
        };
        let title = format!("{}: {} to {}", comparison.title, row.title, to.title);
        Some(Judgement { title, bound, median: ratio.median, claim, standing })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::{Better, Row};

    fn round_trips(shunt: [f64; 3]) -> Vec<Comparison> {
        let row = |name: &str, figures: [f64; 3]| Row { figures: figures.to_vec(), ..Row::new(name, name) };
        let comparison = Comparison {
            name: "rr".to_owned(),
            title: "TCP round trip".to_owned(),
            unit: "µs".to_owned(),
            better: Better::Less,
            setting: String::new(),
            rows: vec![row("bare-veth", [1.0; 3]), row("shunt", shunt)],
        };
        vec![comparison.judged()]
    }

    fn standing(shunt: [f64; 3]) -> Standing {
        judge(&round_trips(shunt))[0].standing
    }

    #[test]
    fn a_target_is_met_by_the_worse_end_of_its_interval() {
        assert_eq!(standing([1.01, 1.02, 1.03]), Standing::Met);
        assert!(matches!(standing([1.01, 1.02, 1.2]), Standing::Median(_)));
        assert!(matches!(standing([1.1, 1.2, 1.3]), Standing::Missed(_)));
    }

    #[test]
    fn what_was_not_measured_is_not_judged() {
        assert_eq!(judge(&round_trips([1.0; 3])).len(), 1);
        assert_eq!(judge(&[]), []);
    }
}

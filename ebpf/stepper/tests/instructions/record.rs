//! What each golden packet cost when somebody last looked, in a file beside this one.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use stepper::Outcome;

/// Set, it has the record written anew: a change of it is then part of a change of the programs.
const RENEW: &str = "SHUNT_RENEW_INSTRUCTIONS";

/// `bpf_map_lookup_elem`.
const LOOK_UP: i32 = 1;

/// A compiler's release may shift some instructions about.
const TOLERATED_PERCENT: u64 = 5;
const TOLERATED: u64 = 6;

/// The cost of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cost {
    pub(crate) instructions: u64,
    /// Of maps.
    pub(crate) look_ups: u32,
    /// Of helpers, look-ups included.
    pub(crate) calls: u32,
}

impl Cost {
    pub(crate) fn of(outcome: &Outcome) -> Self {
        Self {
            instructions: outcome.instructions,
            look_ups: outcome.helpers.get(&LOOK_UP).copied().unwrap_or_default(),
            calls: outcome.helpers.values().sum(),
        }
    }

    /// Whether this is more than a compiler's whim on top of `before`.
    fn exceeds(self, before: Self) -> bool {
        let most = before.instructions + (before.instructions * TOLERATED_PERCENT / 100).max(TOLERATED);
        self.instructions > most || self.look_ups > before.look_ups || self.calls > before.calls
    }
}

/// Holds today's costs against the record's; each packet must be in it.
pub(crate) fn check(costs: BTreeMap<String, Cost>) {
    if std::env::var_os(RENEW).is_some() {
        std::fs::write(path(), written(&costs)).expect("the record can be written");
        return;
    }
    let text = std::fs::read_to_string(path()).unwrap_or_default();
    let record: BTreeMap<&str, Cost> = text.lines().filter_map(read).collect();
    let worse: Vec<String> = costs
        .iter()
        .filter_map(|(name, now)| match record.get(name.as_str()) {
            None => Some(format!("{name}: not in the record")),
            Some(before) if now.exceeds(*before) => Some(format!("{name}: {now:?}, was {before:?}")),
            Some(_) => None,
        })
        .collect();
    assert!(
        worse.is_empty(),
        "packets cost more than they did; where that is meant, {RENEW}=1 writes {}:\n{}",
        path().display(),
        worse.join("\n")
    );
}

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/instructions/record.txt")
}

fn written(costs: &BTreeMap<String, Cost>) -> String {
    let mut text =
        String::from("# packet, instructions, look-ups in maps, calls of helpers (look-ups included)\n");
    for (name, cost) in costs {
        let _ = writeln!(text, "{name:<44} {:>5} {:>3} {:>3}", cost.instructions, cost.look_ups, cost.calls);
    }
    text
}

fn read(line: &str) -> Option<(&str, Cost)> {
    let [name, instructions, look_ups, calls] =
        line.split('#').next()?.split_whitespace().collect::<Vec<_>>().try_into().ok()?;
    let cost = Cost {
        instructions: instructions.parse().ok()?,
        look_ups: look_ups.parse().ok()?,
        calls: calls.parse().ok()?,
    };
    Some((name, cost))
}

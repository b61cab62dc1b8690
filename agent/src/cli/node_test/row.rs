//! What is told of each case.

use serde::Serialize;

use crate::cli::table::Align::{Left, Right};
use crate::cli::table::{Table, grouped};

/// How a case has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Outcome {
    Passed,
    Failed,
    /// It is not of this node; the detail says why.
    Skipped,
}

/// One case over one family.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    pub(super) case: &'static str,
    pub(super) family: &'static str,
    pub(super) outcome: Outcome,
    /// Packets of its containers by the fast path, both ways.
    pub(super) fast: u64,
    /// And by the kernel.
    pub(super) kernel: u64,
    pub(super) detail: String,
}

impl Row {
    pub(super) fn skipped(case: &'static str, family: &'static str, why: impl Into<String>) -> Self {
        Self { case, family, outcome: Outcome::Skipped, fast: 0, kernel: 0, detail: why.into() }
    }
}

/// The rows as a table, with the fast path's share of the packets.
pub(super) fn text(rows: &[Row]) -> String {
    let mut table = Table::new([
        ("CASE", Left),
        ("FAMILY", Left),
        ("RESULT", Left),
        ("FAST", Right),
        ("KERNEL", Right),
        ("SHARE", Right),
        ("DETAIL", Left),
    ]);
    for row in rows {
        let outcome = match row.outcome {
            Outcome::Passed => "passed",
            Outcome::Failed => "FAILED",
            Outcome::Skipped => "skipped",
        };
        let share = (row.fast * 100).checked_div(row.fast + row.kernel);
        table.row([
            row.case.to_owned(),
            row.family.to_owned(),
            outcome.to_owned(),
            grouped(row.fast),
            grouped(row.kernel),
            share.map_or_else(|| "-".to_owned(), |share| format!("{share} %")),
            row.detail.clone(),
        ]);
    }
    table.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_the_fast_paths_share() {
        let row = |outcome, fast, kernel| Row {
            case: "gateway",
            family: "IPv4",
            outcome,
            fast,
            kernel,
            detail: "a\nword".into(),
        };
        let text = text(&[row(Outcome::Passed, 199, 1), row(Outcome::Failed, 0, 0)]);
        let lines: Vec<_> = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()).collect();
        assert_eq!(lines[1], ["gateway", "IPv4", "passed", "199", "1", "99", "%", "a\\nword"]);
        assert_eq!(lines[2], ["gateway", "IPv4", "FAILED", "0", "0", "-", "a\\nword"]);
    }
}

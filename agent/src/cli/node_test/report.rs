//! What is told in the end, and the exit code.

use serde::Serialize;

use super::perf::{self, Compared, Measured};
use super::row::{self, Outcome, Row};
use crate::cli::escape::line;
use crate::cli::exit::{INCONSISTENT, UNREACHABLE};

/// The exit code of a node on which everything works.
const WELL: u8 = 0;

/// The contract of `--json`.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    network: String,
    /// Something was tried, and no case failed.
    passed: bool,
    cases: Vec<Row>,
    /// With `--perf`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    perf: Vec<Compared>,
    /// What of it could not be measured, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    perf_errors: Vec<String>,
    /// What the test has made and could not delete, with why and the cure.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    undeleted: Vec<String>,
}

impl Report {
    pub(super) fn new(network: String, cases: Vec<Row>, measured: Measured, undeleted: Vec<String>) -> Self {
        let has = |outcome| cases.iter().any(|row| row.outcome == outcome);
        let passed = has(Outcome::Passed) && !has(Outcome::Failed);
        Self { network, passed, cases, perf: measured.compared, perf_errors: measured.errors, undeleted }
    }

    /// 0 everything works, 1 nothing was tried or something could not be measured, 3 something does not work or is left.
    pub(super) fn code(&self) -> u8 {
        let has_failed = self.cases.iter().any(|row| row.outcome == Outcome::Failed);
        if has_failed || !self.undeleted.is_empty() {
            return INCONSISTENT;
        }
        if self.passed && self.perf_errors.is_empty() { WELL } else { UNREACHABLE }
    }

    /// Whether the network has nothing of what is tried.
    pub(super) fn tried_nothing(&self) -> bool {
        self.cases.iter().all(|row| row.outcome == Outcome::Skipped)
    }

    pub(super) fn text(&self) -> String {
        let perf = perf::text(&self.perf, &self.perf_errors);
        let undeleted = self.undeleted.iter().map(|what| line(&format!("not deleted: {what}"))).collect();
        let parts = [row::text(&self.cases), perf, undeleted];
        let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        parts.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn row(outcome: Outcome) -> Row {
        Row { outcome, ..Row::skipped("gateway", "IPv4", "") }
    }

    fn report(outcomes: &[Outcome], measured: Measured) -> Report {
        let cases = outcomes.iter().copied().map(row).collect();
        Report::new("pods".to_owned(), cases, measured, Vec::new())
    }

    fn lost() -> Measured {
        Measured { errors: vec!["UDP round trips: lost".to_owned()], ..Measured::default() }
    }

    #[test]
    fn what_cannot_be_measured_is_told_beside_the_cases() {
        let good = [Outcome::Passed, Outcome::Skipped];
        assert_eq!(report(&good, Measured::default()).code(), WELL);
        let told = report(&good, lost());
        assert_eq!(told.code(), UNREACHABLE);
        let text = told.text();
        assert!(
            text.contains("gateway") && text.ends_with("\n\nnot measured: UDP round trips: lost\n"),
            "{text}"
        );
        let json = serde_json::to_value(&told).unwrap();
        assert_eq!((json["cases"].as_array().unwrap().len(), &json["passed"]), (2, &json!(true)));
        assert_eq!(json["perf_errors"][0], "UDP round trips: lost");
        assert_eq!(report(&[Outcome::Failed, Outcome::Passed], lost()).code(), INCONSISTENT);
    }

    #[test]
    fn a_node_on_which_nothing_was_tried_has_not_passed() {
        let told = report(&[Outcome::Skipped, Outcome::Skipped], Measured::default());
        assert!(told.tried_nothing() && !told.passed);
        assert_eq!(told.code(), UNREACHABLE);
        assert!(!report(&[Outcome::Skipped, Outcome::Passed], Measured::default()).tried_nothing());
        assert!(!report(&[Outcome::Skipped, Outcome::Failed], Measured::default()).tried_nothing());
    }

    #[test]
    fn what_is_left_is_told_by_the_code_too() {
        let left = vec!["container a: no \u{1b}disk".to_owned()];
        let told = Report::new("pods".to_owned(), vec![row(Outcome::Passed)], Measured::default(), left);
        assert_eq!(told.code(), INCONSISTENT);
        assert!(told.text().ends_with("\n\nnot deleted: container a: no \\u{1b}disk\n"), "{}", told.text());
        let json = serde_json::to_value(&told).unwrap();
        assert_eq!(
            (&json["passed"], &json["undeleted"]),
            (&json!(true), &json!(["container a: no \u{1b}disk"]))
        );
    }
}

//! What came of one machine: the tests' lines on its console, and the guest's own report.

use std::fmt;

use crate::summary::Summary;

#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// As `uname -r` says.
    pub(super) kernel: String,
    /// One line each, with the reason.
    pub(super) skips: Vec<String>,
    /// Of the verifier's budgets, where it was to be renewed.
    pub(super) record: Vec<String>,
    /// None when the guest died before it could tell.
    status: Option<i32>,
    pub(super) summary: Summary,
}

impl Outcome {
    /// Reads the report: `kernel RELEASE`, what was skipped, `record LINE`, and last `status N`.
    pub(super) fn new(report: &str, summary: Summary) -> Self {
        let mut outcome = Self { summary, ..Self::default() };
        for line in report.lines().map(|line| line.trim_end_matches('\r')) {
            if let Some(kernel) = line.strip_prefix("kernel ") {
                kernel.clone_into(&mut outcome.kernel);
            } else if let Some(status) = line.strip_prefix("status ") {
                outcome.status = status.parse().ok();
            } else if let Some(line) = line.strip_prefix("record ") {
                outcome.record.push(line.to_owned());
            } else if !line.is_empty() {
                outcome.skips.push(line.to_owned());
            }
        }
        outcome
    }

    /// Whether the guest came as far as its tests.
    pub(super) fn has_begun(&self) -> bool {
        !self.kernel.is_empty()
    }

    /// Why this is no success; a run without tests is none either.
    pub(super) fn fault(&self) -> Option<String> {
        match self.status {
            None => Some("the guest died before the tests had ended".to_owned()),
            Some(0) if self.summary.passed == 0 => Some("no test was run: is the filter right?".to_owned()),
            Some(0) => None,
            Some(_) => Some("tests failed".to_owned()),
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {} skipped, on Linux {}", self.summary, self.skips.len(), self.kernel)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(passed: usize) -> Summary {
        Summary { passed, ..Summary::default() }
    }

    #[test]
    fn skips_are_told_from_kernel_record_and_status() {
        let report = "kernel 6.1.0-56-cloud-amd64\r\nkernel: tcx is missing: a_test\r\nrecord open x 1 2\r\nstatus 0\r\n";
        let outcome = Outcome::new(report, summary(3));
        assert_eq!(outcome.skips, ["kernel: tcx is missing: a_test"]);
        assert_eq!(outcome.record, ["open x 1 2"]);
        assert_eq!(outcome.fault(), None);
        assert_eq!(outcome.to_string(), "3 passed, 0 failed, 1 skipped, on Linux 6.1.0-56-cloud-amd64");
    }

    #[test]
    fn a_guest_that_says_nothing_at_its_end_has_failed() {
        let fault = |report, passed| Outcome::new(report, summary(passed)).fault();
        assert!(fault("kernel 6.1\n", 3).unwrap().contains("died"));
        assert!(
            !Outcome::new("", summary(0)).has_begun() && Outcome::new("kernel 6.1\n", summary(0)).has_begun()
        );
        assert!(fault("kernel 6.1\nstatus 1\n", 3).is_some());
        assert!(fault("kernel 6.1\nstatus 0\n", 0).unwrap().contains("no test"));
    }
}

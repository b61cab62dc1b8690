//! The sum over all test binaries, read from what the test harness prints.

use std::fmt;

#[derive(Debug, Default, PartialEq)]
pub(crate) struct Summary {
    pub(crate) passed: usize,
    /// By name; a test binary that died before its summary is in the exit status instead.
    pub(crate) failed: Vec<String>,
    pub(crate) ignored: usize,
}

impl Summary {
    /// Takes one line of output: a summary, a failed test, or anything else.
    pub(crate) fn read(&mut self, line: &str) {
        if let Some(summary) = line.strip_prefix("test result: ") {
            self.passed += count(summary, "passed");
            self.ignored += count(summary, "ignored");
        } else if let Some(name) =
            line.strip_prefix("test ").and_then(|rest| rest.strip_suffix(" ... FAILED"))
        {
            self.failed.push(name.to_owned());
        }
    }
}

/// The number that stands before a word, as in `ok. 3 passed; 0 failed; …`.
fn count(summary: &str, word: &str) -> usize {
    let mut words = summary.split_whitespace().zip(summary.split_whitespace().skip(1));
    words.find(|(_, next)| next.trim_end_matches(';') == word).and_then(|(n, _)| n.parse().ok()).unwrap_or(0)
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed.len())?;
        if self.ignored > 0 {
            write!(f, ", {} ignored", self.ignored)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_over_all_test_binaries() {
        let mut summary = Summary::default();
        for line in [
            "test find::an_unknown_station_is_no_answer ... ok",
            "test deliver::a_tag_is_put_back ... FAILED",
            "test result: FAILED. 11 passed; 1 failed; 2 ignored; 0 measured; 0 filtered out; finished in 0.02s",
            "test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 9 filtered out; finished in 0.00s",
        ] {
            summary.read(line);
        }
        assert_eq!(summary.failed, ["deliver::a_tag_is_put_back"]);
        assert_eq!(summary.to_string(), "14 passed, 1 failed, 2 ignored");
    }
}

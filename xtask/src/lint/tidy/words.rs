//! Words that mean "not finished", and paths that exist on one machine only.

use super::finding::Finding;
use super::source::Source;

// Put together here, so that this file does not break its own rules.
const UNFINISHED: [&str; 3] = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];
const MACHINES: [&str; 3] = [concat!("/ro", "ot/"), concat!("/ho", "me/"), concat!("/wo", "rk/")];

pub(super) fn forbidden(sources: &[Source]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in sources.iter().filter(|source| source.path != "Cargo.lock") {
        for (n, line) in source.text.lines().enumerate() {
            for word in UNFINISHED.iter().filter(|word| has_word(line, word)) {
                findings.push(Finding::at(source, n + 1, format!("{word}: finish it, or write an issue")));
            }
            for path in MACHINES.iter().filter(|path| has_path(line, path)) {
                findings.push(Finding::at(source, n + 1, format!("{path}… is a path of one machine")));
            }
        }
    }
    findings
}

fn has_word(line: &str, word: &str) -> bool {
    line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').any(|found| found == word)
}

/// Not as the middle of a longer path, such as the sysfs of something.
fn has_path(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_ascii_alphanumeric() || "._-~}".contains(c))
    })
}

#[cfg(test)]
mod tests {
    use super::super::source::source;
    use super::*;

    #[test]
    fn unfinished_work_is_found_as_a_whole_word() {
        let line = format!("let a = 1; // {}: count\n", UNFINISHED[0]);
        assert_eq!(forbidden(&source("a.rs", &line)).len(), 1);
        assert!(forbidden(&source("a.rs", &format!("MAX_{}S", UNFINISHED[0]))).is_empty());
    }

    #[test]
    fn a_path_of_one_machine_is_found_at_its_start_only() {
        let path = format!("{}somebody/key", MACHINES[1]);
        assert_eq!(forbidden(&source("a.toml", &format!("file = \"{path}\""))).len(), 1);
        assert!(forbidden(&source("a.toml", &format!("file = \"~{path}\""))).is_empty());
    }
}

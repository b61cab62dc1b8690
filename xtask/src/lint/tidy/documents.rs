//! What somebody who has just found the project looks for first.

use super::{Finding, Source};

const EXPECTED: [&str; 7] = [
    "README.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "LICENSE",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "Cargo.lock",
];

pub(super) fn missing(sources: &[Source]) -> Vec<Finding> {
    let has = |path: &str| sources.iter().any(|source| source.path == path && !source.text.trim().is_empty());
    let missing = EXPECTED.iter().filter(|path| !has(path));
    missing
        .map(|path| Finding { place: (*path).to_owned(), message: "is missing or empty".to_owned() })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::source;
    use super::*;

    #[test]
    fn an_empty_document_is_a_missing_one() {
        let missing_with = |text| missing(&source("README.md", text)).len();
        assert_eq!(missing_with("# shunt\n"), EXPECTED.len() - 1);
        assert_eq!(missing_with("\n"), EXPECTED.len());
    }
}

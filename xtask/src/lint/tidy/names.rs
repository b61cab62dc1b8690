//! Names that say nothing about what is inside.

use std::path::Path;

use super::finding::Finding;
use super::source::Source;

const FORBIDDEN: [&str; 8] = ["util", "utils", "helper", "helpers", "common", "misc", "shared", "stuff"];

pub(super) fn forbidden(sources: &[Source]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in sources {
        for part in Path::new(&source.path) {
            let name = Path::new(part).file_stem().unwrap_or_default();
            if FORBIDDEN.iter().any(|forbidden| name == *forbidden) {
                let message = format!("what is in `{}`? Name it after that", part.display());
                findings.push(Finding::in_file(source, message));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::source::source;
    use super::*;

    #[test]
    fn a_folder_and_a_file_can_be_misnamed() {
        assert_eq!(forbidden(&source("agent/src/utils/ring.rs", "")).len(), 1);
        assert_eq!(forbidden(&source("agent/src/helpers.rs", "")).len(), 1);
        assert!(forbidden(&source("agent/src/commonality.rs", "")).is_empty());
    }
}

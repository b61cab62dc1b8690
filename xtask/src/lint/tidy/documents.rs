//! Documents that somebody new looks for: they are there, not too long, and what they point at exists.

use std::collections::BTreeSet;

use super::finding::Finding;
use super::markdown::{Document, quoted, targets};
use super::source::Source;

const EXPECTED: [&str; 29] = [
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "LICENSE",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "Cargo.lock",
    "docs/architecture.md",
    "docs/dataplane/bridging.md",
    "docs/dataplane/stages.md",
    "docs/dataplane/vlan.md",
    "docs/dataplane/nat.md",
    "docs/dataplane/uplinks.md",
    "docs/dataplane/limits.md",
    "docs/operations.md",
    "docs/packages.md",
    "docs/performance.md",
    "docs/testing.md",
    "docs/security.md",
    "docs/api.md",
    "docs/kubernetes.md",
    "docs/podman.md",
    "docs/policy.md",
    "docs/alerts.md",
    "docs/adr/README.md",
    "bench/README.md",
    "agent/dist/shunt-agent.service",
    "dashboards/grafana.json",
    "deploy/helm/shunt/alerts.yaml",
];

/// Lines that a document may have.
const LONGEST: [(&str, usize); 2] = [("README.md", 150), ("docs/architecture.md", 400)];

/// What it tells of the past exists no more.
const HISTORY: &str = "CHANGELOG.md";

pub(super) fn missing(sources: &[Source]) -> Vec<Finding> {
    let has = |path: &str| sources.iter().any(|source| source.path == path && !source.text.trim().is_empty());
    let missing = EXPECTED.iter().filter(|path| !has(path));
    missing
        .map(|path| Finding { place: (*path).to_owned(), message: "is missing or empty".to_owned() })
        .collect()
}

pub(super) fn too_long(sources: &[Source]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, longest) in LONGEST {
        let found = sources.iter().find(|source| source.path == path);
        let lines = found.map_or(0, |source| source.text.lines().count());
        findings.extend(found.filter(|_| lines > longest).map(|source| {
            Finding::in_file(
                source,
                format!("{lines} lines are more than {longest}: move something to its page"),
            )
        }));
    }
    findings
}

/// Links to files of the repository, and to headings in them.
pub(super) fn broken_links(sources: &[Source]) -> Vec<Finding> {
    let tree = Tree::of(sources);
    let mut findings = Vec::new();
    for source in documents(sources) {
        for (line, target) in targets(&source.text) {
            if let Some(why) = tree.breaks(source, target) {
                findings.push(Finding::at(source, line, format!("the link {target} {why}")));
            }
        }
    }
    findings
}

/// Paths in backticks whose first folder is one of the repository's.
pub(super) fn unknown_paths(sources: &[Source]) -> Vec<Finding> {
    let tree = Tree::of(sources);
    let mut findings = Vec::new();
    for source in documents(sources).filter(|source| source.path != HISTORY) {
        for (line, text) in quoted(&source.text) {
            if tree.is_meant(text) && !tree.has(text.trim_end_matches('/')) {
                findings.push(Finding::at(source, line, format!("there is no `{text}`")));
            }
        }
    }
    findings
}

fn documents(sources: &[Source]) -> impl Iterator<Item = &Source> {
    sources.iter().filter(|source| source.path.ends_with(".md"))
}

/// The repository's files and folders.
struct Tree<'a> {
    sources: &'a [Source],
    paths: BTreeSet<&'a str>,
    top: BTreeSet<&'a str>,
    /// What commands leave here.
    ignored: BTreeSet<&'a str>,
}

impl<'a> Tree<'a> {
    fn of(sources: &'a [Source]) -> Self {
        let mut paths = BTreeSet::new();
        let mut top = BTreeSet::new();
        for Source { path, .. } in sources {
            paths.insert(path.as_str());
            let folders = path.match_indices('/').map(|(at, _)| &path[..at]);
            top.extend(path.split_once('/').map(|(folder, _)| folder));
            paths.extend(folders);
        }
        let ignoring = sources.iter().find(|source| source.path == ".gitignore");
        let ignored = ignoring.map_or("", |source| &source.text).lines();
        Self { sources, paths, top, ignored: ignored.filter_map(|line| line.strip_prefix('/')).collect() }
    }

    fn has(&self, path: &str) -> bool {
        self.paths.contains(path)
    }

    fn is_meant(&self, text: &str) -> bool {
        let is_plain = text.chars().all(|c| c.is_ascii_alphanumeric() || "._-/".contains(c));
        let is_here = text.split_once('/').is_some_and(|(folder, _)| self.top.contains(folder));
        is_plain && is_here && !self.ignored.contains(text)
    }

    /// What is wrong with a link in a document, if anything is.
    fn breaks(&self, source: &Source, target: &str) -> Option<&'static str> {
        if target.contains(':') {
            return None;
        }
        let (file, heading) =
            target.split_once('#').map_or((target, None), |(file, name)| (file, Some(name)));
        let path = if file.is_empty() { source.path.clone() } else { beside(&source.path, file) };
        if !self.has(&path) {
            return Some("leads nowhere");
        }
        let document = self.sources.iter().find(|other| other.path == path);
        let is_there = heading
            .zip(document)
            .is_none_or(|(heading, document)| Document(&document.text).has_heading(heading));
        (!is_there).then_some("names a heading that is not there")
    }
}

/// A relative path as one from the checkout's root.
fn beside(document: &str, file: &str) -> String {
    let mut folders: Vec<&str> = document.split('/').collect();
    folders.pop();
    for part in file.trim_end_matches('/').split('/') {
        match part {
            "." => {}
            ".." => drop(folders.pop()),
            part => folders.push(part),
        }
    }
    folders.join("/")
}

#[cfg(test)]
mod tests {
    use super::super::source::source;
    use super::*;

    fn repository(page: &str) -> Vec<Source> {
        let files =
            [("docs/page.md", page), ("docs/other.md", "# A bridge's port\n"), ("agent/src/a.rs", "")];
        files.into_iter().flat_map(|(path, text)| source(path, text)).collect()
    }

    #[test]
    fn an_empty_document_is_a_missing_one() {
        let missing_with = |text| missing(&source("README.md", text)).len();
        assert_eq!(missing_with("# shunt\n"), EXPECTED.len() - 1);
        assert_eq!(missing_with("\n"), EXPECTED.len());
    }

    #[test]
    fn a_readme_has_one_screen_after_another_and_then_too_many() {
        assert!(too_long(&source("README.md", &"\n".repeat(150))).is_empty());
        assert_eq!(too_long(&source("README.md", &"\n".repeat(151))).len(), 1);
    }

    #[test]
    fn a_link_leads_to_a_file_and_to_a_heading_in_it() {
        let good =
            "[a](other.md) [b](other.md#a-bridges-port) [c](../agent/src/a.rs) [d](https://example.org)\n";
        assert!(broken_links(&repository(good)).is_empty());
        for bad in ["[a](gone.md)\n", "[a](other.md#gone)\n", "[a](../other.md)\n", "[a](#gone)\n"] {
            assert_eq!(broken_links(&repository(bad)).len(), 1, "{bad}");
        }
    }

    #[test]
    fn a_path_in_backticks_exists_if_it_begins_in_the_repository() {
        let good = "`agent/src`, `agent/src/a.rs`, `/run/shunt/agent.sock`, `NETWORK/CONTAINER`, `a b/c`\n";
        assert!(unknown_paths(&repository(good)).is_empty());
        assert_eq!(unknown_paths(&repository("in `agent/src/b.rs`\n")).len(), 1);
    }
}

//! The picture of folders and arrows in `docs/architecture.md`: what it says is what manifests and imports say.
//!
//! A crate's arrows are its dependencies on crates of the workspace, without those of its tests. A folder inside a crate has arrows to
//! the folders of the same crate in the picture whose modules it names.

use std::collections::{BTreeMap, BTreeSet};

use super::finding::Finding;
use super::markdown::Document;
use super::source::Source;

const PAGE: &str = "docs/architecture.md";
const BLOCK: &str = "mermaid";
/// The block's first line.
const KIND: &str = "flowchart";

type Arrows<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

pub(super) fn wrong(sources: &[Source]) -> Vec<Finding> {
    let Some(page) = sources.iter().find(|source| source.path == PAGE) else { return Vec::new() };
    let Some(lines) = Document(&page.text).block(BLOCK) else {
        return vec![Finding::in_file(page, format!("has no picture: a block `{BLOCK}`"))];
    };
    let lines = lines.iter().filter(|(_, line)| !line.starts_with(KIND));
    let drawn: Arrows = lines.filter_map(|(_, line)| drawn(line)).collect();
    let folders: BTreeSet<&str> = drawn.keys().chain(drawn.values().flatten()).copied().collect();
    let mut found = of_crates(sources);
    found.extend(
        folders
            .iter()
            .filter(|folder| is_module(folder))
            .map(|folder| (*folder, of_module(folder, &folders, sources))),
    );
    let all: BTreeSet<&str> = found.keys().chain(drawn.keys()).copied().collect();
    let none = BTreeSet::new();
    let mut findings = Vec::new();
    for from in all {
        let (drawn, found) = (drawn.get(from).unwrap_or(&none), found.get(from).unwrap_or(&none));
        let missing = found.difference(drawn).map(|to| format!("the arrow {from} --> {to} is missing"));
        let invented = drawn.difference(found).map(|to| format!("there is no arrow {from} --> {to}"));
        findings.extend(missing.chain(invented).map(|message| Finding::in_file(page, message)));
    }
    findings
}

/// `from --> to & to`; a line without an arrow names a folder that uses none.
fn drawn(line: &str) -> Option<(&str, BTreeSet<&str>)> {
    let (from, to) = line.split_once("-->").unwrap_or((line, ""));
    let to = to.split('&').map(str::trim).filter(|to| !to.is_empty());
    Some((from.trim(), to.collect())).filter(|(from, _)| !from.is_empty())
}

fn is_module(folder: &str) -> bool {
    folder.contains("/src/")
}

/// The crates that use others of the workspace.
fn of_crates(sources: &[Source]) -> Arrows<'_> {
    let root = sources.iter().find(|source| source.path == "Cargo.toml");
    let root = root.map_or("", |source| &source.text);
    let folders: BTreeMap<&str, &str> =
        section(root, "[workspace.dependencies]").filter_map(with_path).collect();
    let mut arrows = Arrows::new();
    for source in sources {
        let Some(folder) = source.path.strip_suffix("/Cargo.toml") else { continue };
        let names = section(&source.text, "[dependencies]").map(name);
        let used: BTreeSet<&str> = names.filter_map(|name| folders.get(name).copied()).collect();
        if !used.is_empty() {
            arrows.insert(folder, used);
        }
    }
    arrows
}

/// The lines of a manifest's section.
fn section<'a>(manifest: &'a str, header: &'a str) -> impl Iterator<Item = &'a str> {
    let lines = manifest.lines().skip_while(move |line| *line != header).skip(1);
    lines.take_while(|line| !line.starts_with('['))
}

fn name(line: &str) -> &str {
    line.split(['.', ' ', '=']).next().unwrap_or_default()
}

/// `name = { path = "folder" }`
fn with_path(line: &str) -> Option<(&str, &str)> {
    let (_, path) = line.split_once("path = \"")?;
    Some((name(line), path.split('"').next()?))
}

/// The folders beside it whose modules a folder names, outside its tests.
fn of_module<'a>(folder: &str, folders: &BTreeSet<&'a str>, sources: &[Source]) -> BTreeSet<&'a str> {
    let Some((parent, _)) = folder.rsplit_once('/') else { return BTreeSet::new() };
    let beside = |name: &str| {
        let path = format!("{parent}/{name}");
        folders.iter().copied().find(|other| *other == path && *other != folder)
    };
    let is_in = |path: &str| path.strip_prefix(folder).is_some_and(|rest| rest.starts_with(['/', '.']));
    let files = sources.iter().filter(|source| source.is_rust() && is_in(&source.path));
    files.flat_map(|source| named(&source.text)).filter_map(|name| beside(&name)).collect()
}

/// The modules that code names directly below `crate`.
fn named(text: &str) -> BTreeSet<String> {
    let text = text.split("#[cfg(test)]").next().unwrap_or_default();
    let code: Vec<&str> = text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect();
    let code = code.join("\n");
    code.match_indices("crate::").flat_map(|(at, found)| first_names(&code[at + found.len()..])).collect()
}

/// `a::b` names `a`, and `{a, b::{c, d}}` names `a` and `b`.
fn first_names(path: &str) -> Vec<String> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let Some(list) = path.strip_prefix('{') else {
        return vec![path.chars().take_while(|c| is_word(*c)).collect()];
    };
    let (mut names, mut depth, mut name) = (Vec::new(), 0, String::new());
    let mut is_begun = false;
    for c in list.chars() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                names.push(std::mem::take(&mut name));
                is_begun = false;
            }
            ':' => is_begun = true,
            c if depth == 0 && is_word(c) && !is_begun => name.push(c),
            _ => {}
        }
    }
    names.push(name);
    names
}

#[cfg(test)]
mod tests {
    use super::super::source::source;
    use super::*;

    fn repository(picture: &str) -> Vec<Source> {
        let page = format!("# House\n```mermaid\nflowchart TD\n{picture}\n```\n");
        let files = [
            (PAGE, &*page),
            ("Cargo.toml", "[workspace.dependencies]\nlib = { path = \"lib\" }\nserde = \"1\"\n"),
            (
                "app/Cargo.toml",
                "[dependencies]\nlib.workspace = true\nserde = \"1\"\n[dev-dependencies]\napp = 1\n",
            ),
            ("lib/Cargo.toml", "[dependencies]\nserde.workspace = true\n"),
            (
                "lib/src/top/a.rs",
                "use crate::{Thing, low::{B, C}};\n// crate::other\n#[cfg(test)] use crate::high;\n",
            ),
            ("lib/src/low/b.rs", "pub struct B;\n"),
        ];
        files.into_iter().flat_map(|(path, text)| source(path, text)).collect()
    }

    #[test]
    fn a_picture_that_is_true_is_left_alone() {
        assert!(wrong(&repository("  app --> lib\n  lib/src/top --> lib/src/low")).is_empty());
    }

    #[test]
    fn an_arrow_that_is_missing_or_invented_is_found() {
        for picture in [
            "  lib/src/top --> lib/src/low",
            "  app --> lib\nlib/src/top\nlib/src/low",
            "  app --> lib\n  lib/src/top --> lib/src/low\nlib/src/low --> lib/src/top",
        ] {
            assert_eq!(wrong(&repository(picture)).len(), 1, "{picture}");
        }
    }

    #[test]
    fn a_page_without_a_picture_is_found() {
        assert_eq!(wrong(&source(PAGE, "# House\n")).len(), 1);
    }
}

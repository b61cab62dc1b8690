//! The house rules that neither rustfmt nor clippy knows.

mod arrows;
mod documents;
mod keys;
mod length;
mod maps;
mod markdown;
mod names;
mod unsafe_code;
mod words;

use std::fs;

use anyhow::{Context, Result, bail};

use crate::{process, workspace};

/// A text file of the checkout.
struct Source {
    /// From the checkout's root.
    path: String,
    text: String,
}

impl Source {
    fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// The lines with their numbers, without what `//` hides: comments may talk about anything.
    fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(n, line)| (n + 1, line.split("//").next().unwrap_or_default()))
    }
}

/// What a rule has to say about a place.
struct Finding {
    place: String,
    message: String,
}

impl Finding {
    fn in_file(source: &Source, message: impl Into<String>) -> Self {
        Self { place: source.path.clone(), message: message.into() }
    }

    fn at(source: &Source, line: usize, message: impl Into<String>) -> Self {
        Self { place: format!("{}:{line}", source.path), message: message.into() }
    }
}

pub(super) fn run() -> Result<()> {
    let sources = sources()?;
    for warning in length::long(&sources) {
        eprintln!("tidy: warning: {}: {}", warning.place, warning.message);
    }
    let rules = [
        documents::missing,
        documents::too_long,
        documents::broken_links,
        documents::unknown_paths,
        arrows::wrong,
        keys::undocumented,
        length::too_long,
        length::over_a_screen,
        names::forbidden,
        words::forbidden,
        unsafe_code::misplaced,
        maps::misnamed,
    ];
    let findings: Vec<_> = rules.iter().flat_map(|rule| rule(&sources)).collect();
    for finding in &findings {
        eprintln!("tidy: {}: {}", finding.place, finding.message);
    }
    if !findings.is_empty() {
        bail!("{} house rules broken", findings.len());
    }
    Ok(())
}

/// Every text file that is, or would be, committed.
fn sources() -> Result<Vec<Source>> {
    let mut git = std::process::Command::new("git");
    git.current_dir(workspace::root()).args(["ls-files", "--cached", "--others", "--exclude-standard"]);
    let listing = process::output(&mut git)?;
    let mut sources = Vec::new();
    for path in listing.lines() {
        let file = workspace::root().join(path);
        if !file.is_file() {
            continue; // deleted, not yet committed
        }
        let bytes = fs::read(&file).with_context(|| format!("cannot read {path}"))?;
        if let Ok(text) = String::from_utf8(bytes) {
            sources.push(Source { path: path.to_owned(), text });
        }
    }
    Ok(sources)
}

#[cfg(test)]
fn source(path: &str, text: &str) -> Vec<Source> {
    vec![Source { path: path.to_owned(), text: text.to_owned() }]
}

//! What the rules look at.

use std::fs;

use anyhow::{Context, Result};

use crate::{process, workspace};

/// A text file of the checkout.
pub(super) struct Source {
    /// From the checkout's root.
    pub(super) path: String,
    pub(super) text: String,
}

impl Source {
    pub(super) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// The lines with their numbers, without what `//` hides: comments may talk about anything.
    pub(super) fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(n, line)| (n + 1, line.split("//").next().unwrap_or_default()))
    }
}

/// Every text file that is, or would be, committed.
pub(super) fn all() -> Result<Vec<Source>> {
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
pub(super) fn source(path: &str, text: &str) -> Vec<Source> {
    vec![Source { path: path.to_owned(), text: text.to_owned() }]
}

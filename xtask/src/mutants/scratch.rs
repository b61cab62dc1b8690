//! The copy of the checkout in which faults are tried: what git knows or would add, and nothing else.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::{process, workspace};

pub(super) struct Scratch {
    root: PathBuf,
}

impl Scratch {
    /// Brings the copy up to date. Files that are the same are left alone, so that cargo builds only what differs.
    pub(super) fn copy() -> Result<Self> {
        let scratch = Self { root: workspace::root().join("target/mutants") };
        let files = tracked(workspace::root())?;
        for file in &files {
            scratch.write(file, &read(&workspace::root().join(file))?)?;
        }
        scratch.remove_all_but(&files)?;
        Ok(scratch)
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    pub(super) fn read(&self, file: &str) -> Result<String> {
        let path = self.root.join(file);
        String::from_utf8(read(&path)?).with_context(|| format!("{} is no text", path.display()))
    }

    pub(super) fn write(&self, file: &str, content: &[u8]) -> Result<()> {
        let path = self.root.join(file);
        if fs::read(&path).is_ok_and(|present| present == content) {
            return Ok(());
        }
        let directory = path.parent().context("a file lies in a directory")?;
        fs::create_dir_all(directory)
            .and_then(|()| fs::write(&path, content))
            .with_context(|| format!("cannot write {}", path.display()))
    }

    /// A module or a test that the checkout no longer has would still be built.
    fn remove_all_but(&self, files: &BTreeSet<String>) -> Result<()> {
        let mut open = vec![self.root.clone()];
        while let Some(directory) = open.pop() {
            for entry in
                fs::read_dir(&directory).with_context(|| format!("cannot read {}", directory.display()))?
            {
                let path = entry.context("cannot read a directory")?.path();
                let name = path.strip_prefix(&self.root).unwrap_or(&path).to_string_lossy().into_owned();
                if name == "target" {
                    continue;
                } else if path.is_dir() {
                    open.push(path);
                } else if !files.contains(&name) {
                    fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
                }
            }
        }
        Ok(())
    }
}

fn tracked(root: &Path) -> Result<BTreeSet<String>> {
    let mut git = Command::new("git");
    git.current_dir(root).args(["ls-files", "--cached", "--others", "--exclude-standard"]);
    let listing = process::output(&mut git)?;
    Ok(listing.lines().filter(|file| root.join(file).is_file()).map(str::to_owned).collect())
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

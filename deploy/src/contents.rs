//! The files of a node or an image. In the image there is no shell: whatever runs in it is a verb of the agent.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::program::{self, Architecture};

/// Where the programs are. The agent installs the plugin that is beside itself.
pub(crate) const AGENT: &str = "usr/bin/shunt-agent";
const PLUGIN: &str = "usr/bin/shunt";

/// Where the licences are.
const LICENCES: &str = "usr/share/doc/shunt";

/// An entry of a file system.
#[derive(Clone, Debug)]
pub(crate) enum Entry {
    Directory { mode: u32 },
    File { mode: u32, bytes: Vec<u8> },
    Link { target: &'static str },
}

impl Entry {
    /// A file that everybody may read.
    pub(crate) fn text(text: &str) -> Self {
        Self::File { mode: 0o644, bytes: text.into() }
    }
}

/// The entries by their paths from the root, a directory before what is in it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Contents(BTreeMap<String, Entry>);

impl Contents {
    /// Reads what an image has: the programs in `programs`, and the licences at the root of the checkout.
    ///
    /// # Errors
    /// One cannot be read, or is no program that runs alone.
    pub(crate) fn read(programs: &Path, checkout: &Path) -> Result<(Self, Architecture)> {
        let mut contents = Self::default();
        let architecture = read_programs(&mut contents, programs, [AGENT, PLUGIN])?;
        add_licences(&mut contents, checkout)?;
        // Runtimes name namespaces of containers by the old path.
        contents.add("run", Entry::Directory { mode: 0o755 });
        contents.add("var/run", Entry::Link { target: "../run" });
        Ok((contents, architecture))
    }

    /// Adds an entry, and the directories above it.
    pub(crate) fn add(&mut self, path: &str, entry: Entry) {
        for (at, _) in path.match_indices('/') {
            self.0.entry(path[..at].to_owned()).or_insert(Entry::Directory { mode: 0o755 });
        }
        self.0.insert(path.to_owned(), entry);
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = (&str, &Entry)> {
        self.0.iter().map(|(path, entry)| (path.as_str(), entry))
    }

    /// The files and links alone.
    pub(crate) fn without_directories(mut self) -> Self {
        self.0.retain(|_, entry| !matches!(entry, Entry::Directory { .. }));
        self
    }

    /// The bytes of all files.
    pub(crate) fn size(&self) -> usize {
        let sizes =
            self.0.values().map(|entry| if let Entry::File { bytes, .. } = entry { bytes.len() } else { 0 });
        sizes.sum()
    }
}

/// Adds agent and plugin at their places; for which processor they are.
///
/// # Errors
/// One cannot be read, or is no program that runs alone.
pub(crate) fn read_programs(
    contents: &mut Contents,
    programs: &Path,
    places: [&str; 2],
) -> Result<Architecture> {
    let mut architectures = Vec::new();
    for place in places {
        let path = programs.join(Path::new(place).file_name().unwrap_or_default());
        let bytes = read(&path)?;
        let architecture = program::architecture(&bytes);
        architectures.push(architecture.with_context(|| path.display().to_string())?);
        contents.add(place, Entry::File { mode: 0o755, bytes });
    }
    ensure!(architectures[0] == architectures[1], "agent and plugin are built for different processors");
    Ok(architectures[0])
}

/// Adds the licences at the root of the checkout.
///
/// # Errors
/// One cannot be read.
pub(crate) fn add_licences(contents: &mut Contents, checkout: &Path) -> Result<()> {
    for name in ["LICENSE", "LICENSE-APACHE", "LICENSE-MIT"] {
        let bytes = read(&checkout.join(name))?;
        contents.add(&format!("{LICENCES}/{name}"), Entry::File { mode: 0o644, bytes });
    }
    Ok(())
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

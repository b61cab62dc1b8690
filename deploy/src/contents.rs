//! The files of the image. There is no shell: whatever runs in it is a verb of the agent.

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

/// An entry of the image's file system.
#[derive(Clone, Debug)]
pub(crate) enum Entry {
    Directory { mode: u32 },
    File { mode: u32, bytes: Vec<u8> },
    Link { target: &'static str },
}

/// The entries by their paths from the root, a directory before what is in it.
#[derive(Debug, Default)]
pub(crate) struct Contents(BTreeMap<String, Entry>);

impl Contents {
    /// Reads the programs in `programs`, and the licences at the root of the checkout.
    ///
    /// # Errors
    /// One cannot be read, or is no program that runs alone.
    pub(crate) fn read(programs: &Path, checkout: &Path) -> Result<(Self, Architecture)> {
        let mut contents = Self::default();
        let mut architectures = Vec::new();
        for place in [AGENT, PLUGIN] {
            let path = programs.join(Path::new(place).file_name().unwrap_or_default());
            let bytes = read(&path)?;
            let architecture = program::architecture(&bytes);
            architectures.push(architecture.with_context(|| path.display().to_string())?);
            contents.add(place, Entry::File { mode: 0o755, bytes });
        }
        ensure!(architectures[0] == architectures[1], "agent and plugin are built for different processors");
        for name in ["LICENSE", "LICENSE-APACHE", "LICENSE-MIT"] {
            let bytes = read(&checkout.join(name))?;
            contents.add(&format!("{LICENCES}/{name}"), Entry::File { mode: 0o644, bytes });
        }
        // Runtimes name namespaces of containers by the old path.
        contents.add("run", Entry::Directory { mode: 0o755 });
        contents.add("var/run", Entry::Link { target: "../run" });
        Ok((contents, architectures[0]))
    }

    /// Adds an entry, and the directories above it.
    fn add(&mut self, path: &str, entry: Entry) {
        for (at, _) in path.match_indices('/') {
            self.0.entry(path[..at].to_owned()).or_insert(Entry::Directory { mode: 0o755 });
        }
        self.0.insert(path.to_owned(), entry);
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = (&str, &Entry)> {
        self.0.iter().map(|(path, entry)| (path.as_str(), entry))
    }
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

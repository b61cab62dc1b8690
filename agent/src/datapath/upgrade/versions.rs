//! Pins of agents with another map ABI: an older agent's are migrated, a newer agent's are never touched.
//!
//! Each version has its own directory, so that no program reads a map of another layout. An older agent's programs serve with their own
//! maps until each link is updated (`bpf_link_update`), after this version's maps have been filled. A map with the same layout in both
//! versions is kept with its entries. Every step is idempotent: an interrupted start is finished by the next one.

use std::path::{Path, PathBuf};
use std::{fs, io};

use aya::maps::{HashMap, MapData, MapError};
use shunt_dataplane::abi::ABI_VERSION;
use shunt_dataplane::abi::translation::{Translation, TupleKey};

use super::grown;
use crate::datapath::layout::{self, LayoutError};
use crate::datapath::pins::Pins;

/// Why pins cannot be taken over.
#[derive(Debug, thiserror::Error)]
pub enum VersionError {
    /// It is a newer agent's.
    #[error(
        "{path} is a newer agent's, which speaks ABI {found} with its maps; this one speaks {ABI_VERSION}. Its programs go on \
         serving. The way back: start that agent again (`shunt-agent upgrade --check` of the older one says when it can take \
         over), remove the containers that it serves, stop it, and remove {path}"
    )]
    Newer {
        /// Its directory.
        path: PathBuf,
        /// Its version.
        found: u32,
    },
    /// A map cannot be looked at.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// A directory or pin cannot be read, moved or removed.
    #[error("the pins of an older agent in {path}: {source}")]
    Pins {
        /// Its directory.
        path: PathBuf,
        /// The file system's word.
        source: io::Error,
    },
}

/// The pins of an agent with an older ABI.
#[derive(Clone, Debug)]
pub struct Older {
    /// Its version.
    pub abi: u32,
    pins: Pins,
}

/// The older versions below `bpffs`, the latest first. A directory in which nothing is an agent's is none.
///
/// # Errors
/// [`VersionError::Newer`]: nothing may be changed.
pub fn older(bpffs: &Path) -> Result<Vec<Older>, VersionError> {
    let failed = |source| VersionError::Pins { path: bpffs.to_path_buf(), source };
    let entries = match fs::read_dir(bpffs) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(failed)?,
    };
    let mut older = Vec::new();
    for entry in entries {
        let path = entry.map_err(failed)?.path();
        match version(&path) {
            Some(found) if found > ABI_VERSION => return Err(VersionError::Newer { path, found }),
            Some(abi) if abi < ABI_VERSION => {
                let pins = Pins::at(path);
                older.extend(pins.are_there().then_some(Older { abi, pins }));
            }
            _ => {}
        }
    }
    older.sort_by_key(|older| std::cmp::Reverse(older.abi));
    Ok(older)
}

fn version(path: &Path) -> Option<u32> {
    path.file_name()?.to_str()?.strip_prefix('v')?.parse().ok()
}

impl Older {
    /// The maps that can be taken over with their entries.
    ///
    /// # Errors
    /// A map cannot be looked at.
    pub fn carried(&self) -> Result<Vec<&'static str>, VersionError> {
        Ok(layout::same_as(&self.pins, self.abi)?)
    }

    /// Takes over the maps that this version lacks.
    ///
    /// # Errors
    /// [`VersionError`].
    pub fn carry_maps(&self, ours: &Pins) -> Result<(), VersionError> {
        for name in self.carried()? {
            if !ours.map(name).exists() {
                fs::rename(self.pins.map(name), ours.map(name)).map_err(self.failed())?;
            }
        }
        Ok(())
    }

    /// Why it does not come back once its pins are taken over.
    pub fn why_lasting(&self) -> String {
        let Self { abi, .. } = self;
        format!(
            "pins of ABI {abi} become those of ABI {ABI_VERSION}, which an agent of ABI {abi} refuses: it could start again only once the \
             containers are removed"
        )
    }

    /// Whether its connections can be copied, which [`Self::carried`] does not say.
    pub fn has_earlier_flows(&self) -> bool {
        grown::is_earlier(&self.pins.map("FLOWS"))
    }

    /// Copies its connections where they are of an earlier layout, as far as `flows` lacks them.
    ///
    /// # Errors
    /// The kernel's.
    pub fn copy_flows(&self, flows: &mut HashMap<MapData, TupleKey, Translation>) -> Result<(), MapError> {
        if self.has_earlier_flows() {
            let copied = grown::copy(&self.pins.map("FLOWS"), flows)?;
            tracing::info!(copied, abi = self.abi, "entries of connections of an earlier layout");
        }
        Ok(())
    }

    /// Takes over its links with their programs. A link that this version has, too, is removed.
    ///
    /// # Errors
    /// [`VersionError::Pins`].
    pub fn carry_links(&self, ours: &Pins) -> Result<(), VersionError> {
        let links = match self.pins.links() {
            // A removal that was interrupted has left none.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            links => links.map_err(self.failed())?,
        };
        for link in links {
            carry(&link.path, &ours.link(link.program, link.ifindex)).map_err(self.failed())?;
        }
        for ifindex in self.pins.nics().map_err(self.failed())? {
            carry(&self.pins.nic(ifindex), &ours.nic(ifindex)).map_err(self.failed())?;
        }
        Ok(())
    }

    /// Removes the rest: detached programs and unused maps. What is another's stays.
    ///
    /// # Errors
    /// [`VersionError::Pins`], which names what stays.
    pub fn remove(&self) -> Result<(), VersionError> {
        self.pins.remove().map_err(self.failed())
    }

    fn failed(&self) -> impl Fn(io::Error) -> VersionError {
        let path = self.pins.root().to_path_buf();
        move |source| VersionError::Pins { path: path.clone(), source }
    }
}

fn carry(from: &Path, to: &Path) -> io::Result<()> {
    if to.exists() { fs::remove_file(from) } else { fs::rename(from, to) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_anothers_below_an_older_version_stays_and_is_named_and_is_no_version() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        for directory in ["v0/links", "v0/maps", "v0/backup"] {
            fs::create_dir_all(path(directory)).unwrap();
        }
        for file in ["v0/maps/PORTS", "v0/links/from_container-7", "v0/backup/links"] {
            fs::write(path(file), "").unwrap();
        }
        let found = older(dir.path()).unwrap();
        let abis: Vec<_> = found.iter().map(|older| older.abi).collect();
        assert_eq!(abis, [0]);
        let why = found[0].remove().unwrap_err().to_string();
        assert!(why.contains("/v0/backup: not shunt's, and not removed"), "{why}");
        assert!(path("v0/backup/links").exists() && !path("v0/maps").exists() && !path("v0/links").exists());
        found[0].carry_links(&Pins::at(path("v2"))).unwrap();
        assert!(older(dir.path()).unwrap().is_empty(), "nothing of an agent's is left");
    }
}

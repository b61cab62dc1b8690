//! Pins of agents of other versions of the map ABI: what an older one left is moved in, what a newer one left is not touched.
//!
//! Each version has a directory of its own, so that no program ever reads a map that means something else. An older
//! agent's programs go on with their maps until each of their links has this version's program (`bpf_link_update`), which is
//! not before this version's maps have the entries. A map that means the same in both is taken over with what is in it.
//! Every step may be done twice: a start that is killed in the middle is finished by the next.

use std::path::{Path, PathBuf};
use std::{fs, io};

use shunt_dataplane::abi::ABI_VERSION;

use super::layout::{self, LayoutError};
use super::pins::Pins;

/// Why what is pinned cannot be taken over.
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

/// What an agent of an older version left.
#[derive(Clone, Debug)]
pub struct Older {
    /// Its version.
    pub abi: u32,
    pins: Pins,
}

/// What older agents left below `bpffs`, the latest first.
///
/// # Errors
/// [`VersionError::Newer`], and then nothing is to be done.
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
            Some(abi) if abi < ABI_VERSION => older.push(Older { abi, pins: Pins::at(path) }),
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
    /// The maps that can be taken over with what is in them.
    ///
    /// # Errors
    /// A map cannot be looked at.
    pub fn carried(&self) -> Result<Vec<&'static str>, VersionError> {
        Ok(layout::same_as(&self.pins, self.abi)?)
    }

    /// Takes those maps over that this version has none of yet.
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

    /// Takes its links over, with the programs that they have. One that this version has a link instead of is removed.
    ///
    /// # Errors
    /// [`VersionError::Pins`].
    pub fn carry_links(&self, ours: &Pins) -> Result<(), VersionError> {
        for link in self.pins.links().map_err(self.failed())? {
            carry(&link.path, &ours.link(link.program, link.ifindex)).map_err(self.failed())?;
        }
        for ifindex in self.pins.nics().map_err(self.failed())? {
            carry(&self.pins.nic(ifindex), &ours.nic(ifindex)).map_err(self.failed())?;
        }
        Ok(())
    }

    /// Removes what is left of it: programs that run nowhere any more, and maps that nobody reads.
    ///
    /// # Errors
    /// [`VersionError::Pins`].
    pub fn remove(&self) -> Result<(), VersionError> {
        fs::remove_dir_all(self.pins.root()).map_err(self.failed())
    }

    fn failed(&self) -> impl Fn(io::Error) -> VersionError {
        let path = self.pins.root().to_path_buf();
        move |source| VersionError::Pins { path: path.clone(), source }
    }
}

fn carry(from: &Path, to: &Path) -> io::Result<()> {
    if to.exists() { fs::remove_file(from) } else { fs::rename(from, to) }
}

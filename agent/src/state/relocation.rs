//! Relocation files: what was moved from an uplink to its bridge, one file per uplink in `relocations/`.
//!
//! A file is written before the first address is moved, so that an interrupted move can be finished or reverted. The directory is created
//! with the first file.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use shunt_agent_api::Interface;
use shunt_netlink::l3_config::L3Config;
use shunt_regular_file::read_own;

use super::record::{FORMAT, LONGEST};
use super::store::{Store, StoreError, UNFINISHED, failed};

/// The progress of the move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// In progress: partly on the bridge, partly on the uplink, or on both.
    Moving,
    /// Everything is on the bridge. Later changes there are the operator's.
    Moved,
    /// On the way back.
    Returning,
}

/// What was moved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Relocation {
    /// [`FORMAT`].
    pub format: u32,
    /// The kernel's boot id. After a reboot everything is where the node's own configuration puts it.
    pub boot: String,
    /// From where.
    pub uplink: Interface,
    /// Where to.
    pub bridge: Interface,
    /// The bridge's own Ethernet address, while it has the uplink's.
    pub bridge_mac: [u8; 6],
    /// Whether the uplink was a port of the bridge before.
    pub kept: bool,
    /// The progress of the move.
    pub phase: Phase,
    /// Addresses, routes and neighbours. The name in the file is older than the field's.
    #[serde(rename = "belongings")]
    pub l3_config: L3Config,
}

impl Store {
    /// Writes or replaces the relocation file of an uplink.
    ///
    /// # Errors
    /// The file system's; what was written before is still there.
    pub fn write_relocation(&mut self, relocation: &Relocation) -> Result<(), StoreError> {
        let directory = self.relocations_directory();
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&directory);
        made.map_err(failed("create", &directory))?;
        let path = self.relocation_path(&relocation.uplink.name);
        let relocation = Relocation { format: FORMAT, boot: self.boot.clone(), ..relocation.clone() };
        let mut content =
            serde_json::to_vec_pretty(&relocation).map_err(|error| failed("write", &path)(error.into()))?;
        content.push(b'\n');
        self.put(&path, &content)
    }

    /// Removes the relocation file of an uplink.
    ///
    /// # Errors
    /// The file system's: [`Store::retry`] tries again.
    pub fn remove_relocation(&mut self, uplink: &str) -> Result<(), StoreError> {
        self.take_away(self.relocation_path(uplink))
    }

    /// Reads the relocation files. Files of an earlier boot are removed; unreadable files are moved to
    /// quarantine and returned second.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn relocations(&self) -> Result<(Vec<Relocation>, Vec<PathBuf>), StoreError> {
        let (mut found, mut aside) = (Vec::new(), Vec::new());
        let directory = self.relocations_directory();
        let entries = match fs::read_dir(&directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((found, aside)),
            entries => entries.map_err(failed("read", &directory))?,
        };
        for entry in entries {
            let path = entry.map_err(failed("read", &directory))?.path();
            let unfinished = path.to_string_lossy().ends_with(UNFINISHED);
            let read = read_own(&path, LONGEST).ok();
            let read = read.and_then(|bytes| serde_json::from_slice::<Relocation>(&bytes).ok());
            match read {
                Some(relocation) if !unfinished && relocation.boot == self.boot => found.push(relocation),
                None if !unfinished => aside.push(self.put_aside(&path)),
                _ => drop(fs::remove_file(&path)),
            }
        }
        Ok((found, aside))
    }

    fn relocation_path(&self, uplink: &str) -> PathBuf {
        self.relocations_directory().join(format!("{uplink}.json"))
    }
}

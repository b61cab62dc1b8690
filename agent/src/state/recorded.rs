//! The state directory, looked at while an agent has it or without one.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use shunt_agent_api::BridgePort;

use super::record::{Record, RecordError};
use super::store::{BOOT_ID, StoreError, UNFINISHED, failed};

/// What is written down of this boot.
#[derive(Debug, Default)]
pub struct Recorded {
    /// The attachments.
    pub ports: Vec<BridgePort>,
    /// Files that cannot be read, in quarantine or not.
    pub unreadable: Vec<(PathBuf, RecordError)>,
}

/// Reads every record, and changes nothing. A file that goes meanwhile is a container that went.
///
/// # Errors
/// A directory cannot be read. There may be none.
pub fn recorded(state_dir: &Path) -> Result<Recorded, StoreError> {
    let boot = fs::read_to_string(BOOT_ID).map_err(failed("read", Path::new(BOOT_ID)))?;
    let mut found = Recorded::default();
    for directory in ["attachments", "quarantine"].map(|name| state_dir.join(name)) {
        let entries = match fs::read_dir(&directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            entries => entries.map_err(failed("read", &directory))?,
        };
        for entry in entries {
            let path = entry.map_err(failed("read", &directory))?.path();
            if path.to_string_lossy().ends_with(UNFINISHED) {
                continue;
            }
            match Record::open(&path) {
                Err(RecordError::Io(error)) if error.kind() == io::ErrorKind::NotFound => {}
                Ok(record) if record.boot == boot.trim() => found.ports.push(record.port),
                Ok(_) => {}
                Err(error) => found.unreadable.push((path, error)),
            }
        }
    }
    Ok(found)
}

//! The file of what containers that are gone have carried: `departed.json`, of this boot. Whatever is wrong with it, it is begun anew.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use shunt_regular_file::read_own;

use super::record::FORMAT;
use super::store::{Store, StoreError, failed};
use crate::departed::Departed;

/// Bytes of the file: a thousand namespaces, each with every reason to drop.
const LONGEST: u64 = 16 << 20;

#[derive(Serialize, Deserialize)]
struct DepartedFile {
    /// [`FORMAT`].
    format: u32,
    /// The kernel's boot id: counters begin anew with each boot.
    boot: String,
    departed: Departed,
}

impl Store {
    /// Writes the file.
    ///
    /// # Errors
    /// The file system's; what was written before is still there.
    pub fn write_departed(&mut self, departed: &Departed) -> Result<(), StoreError> {
        let path = self.departed_path();
        let file = DepartedFile { format: FORMAT, boot: self.boot.clone(), departed: departed.clone() };
        let content = serde_json::to_vec(&file).map_err(|error| failed("write", &path)(error.into()))?;
        self.put(&path, &content)
    }

    /// Reads the file; nothing where there is none of this boot.
    pub fn departed(&self) -> Departed {
        let read = read_own(&self.departed_path(), LONGEST).ok();
        let file = read.and_then(|bytes| serde_json::from_slice::<DepartedFile>(&bytes).ok());
        let file = file.filter(|file| file.boot == self.boot && file.format <= FORMAT);
        file.map(|file| file.departed).unwrap_or_default()
    }

    fn departed_path(&self) -> PathBuf {
        self.directory().with_file_name("departed.json")
    }
}

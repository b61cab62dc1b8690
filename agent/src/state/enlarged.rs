//! Which interfaces were given larger packets than they had (`bigTcp`): noted before they are, for who takes that back.

use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use shunt_agent_api::{Interface, Packets};
use shunt_regular_file::read_own;

use super::record::{FORMAT, LONGEST};
use super::store::{Store, StoreError, failed};

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Enlarged {
    /// Which.
    pub link: Interface,
    /// What it had.
    pub before: Packets,
    /// What it was given.
    pub now: Packets,
}

/// The file.
#[derive(Debug, Serialize, Deserialize)]
struct Note {
    /// [`FORMAT`].
    format: u32,
    /// The kernel's boot id: after a reboot interfaces have what their drivers say.
    boot: String,
    links: Vec<Enlarged>,
}

impl Store {
    /// Writes all of them down, in place of those before.
    ///
    /// # Errors
    /// The file system's; what was written before is still there.
    pub fn write_enlarged(&mut self, links: &[Enlarged]) -> Result<(), StoreError> {
        let path = self.enlarged_path();
        let note = Note { format: FORMAT, boot: self.boot.clone(), links: links.to_vec() };
        let mut content =
            serde_json::to_vec_pretty(&note).map_err(|error| failed("write", &path)(error.into()))?;
        content.push(b'\n');
        self.put(&path, &content)
    }

    /// Those of this boot; none where the file is absent or cannot be read.
    pub fn enlarged(&self) -> Vec<Enlarged> {
        let path = self.enlarged_path();
        let read = read_own(&path, LONGEST).and_then(|text| Ok(serde_json::from_slice::<Note>(&text)?));
        match read {
            Ok(note) if note.boot == self.boot => note.links,
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(file = %path.display(), %error, "which interfaces have larger packets by shunt cannot be read");
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    /// Removes the file; it may be gone already.
    ///
    /// # Errors
    /// The file system's: [`Store::retry`] tries again.
    pub fn remove_enlarged(&mut self) -> Result<(), StoreError> {
        self.take_away(self.enlarged_path())
    }

    fn enlarged_path(&self) -> PathBuf {
        self.directory().with_file_name("enlarged.json")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_noted_is_read_in_the_same_boot_only() {
        let dir = tempfile::tempdir().unwrap();
        let link = Interface { index: 7, name: "eth0".to_owned() };
        let one = Enlarged { link, before: Packets::USUAL, now: Packets::of_both(131_072) };
        let mut store = Store::open(dir.path()).unwrap();
        assert_eq!(store.enlarged(), []);
        store.write_enlarged(std::slice::from_ref(&one)).unwrap();
        assert_eq!(store.enlarged(), [one]);
        store.boot = "another".to_owned();
        assert_eq!(store.enlarged(), []);
        store.remove_enlarged().unwrap();
        store.remove_enlarged().unwrap();
        assert!(!dir.path().join("enlarged.json").exists());
    }
}

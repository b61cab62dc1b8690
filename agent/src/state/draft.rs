//! An empty file that lies ready for the next attachment.
//!
//! To make a file takes ext4 0.05 to 0.1 ms, and whoever attaches a container waits for it. To write into one that is there
//! already and to name it takes a third of that, so one is made while nobody waits.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use crate::seams::{self, Seam};

/// The file, if there is one.
#[derive(Debug)]
pub(super) struct Draft {
    path: PathBuf,
    file: Option<File>,
}

impl Draft {
    /// None lies ready yet. What an agent that was killed has left there is nobody's.
    pub(super) fn at(path: PathBuf) -> Self {
        Self { path, file: None }
    }

    /// Makes the file, unless it is there. Where it cannot be made, the attachment's own will show why.
    pub(super) fn prepare(&mut self) {
        if self.file.is_none() {
            self.file = create(&self.path).ok();
        }
    }

    /// Gives the file this content and then this name, whoever had it before. False where that was not done: there was none, somebody
    /// has tidied up, the file system refuses. Then nothing has the name that had not, and whoever makes a file of its own hears why.
    pub(super) fn finish(&mut self, name: &Path, content: &[u8]) -> bool {
        let Some(mut file) = self.file.take() else { return false };
        let finished = seams::pass(Seam::Files)
            .and_then(|()| file.write_all(content))
            .and_then(|()| fs::rename(&self.path, name));
        if finished.is_err() {
            let _absent = fs::remove_file(&self.path);
        }
        finished.is_ok()
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if self.file.is_some() {
            let _absent = fs::remove_file(&self.path);
        }
    }
}

/// Makes a file that is empty and root's alone, or empties the one that is there.
pub(super) fn create(path: &Path) -> io::Result<File> {
    seams::pass(Seam::Files)?;
    OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_named_once_and_whole() {
        let dir = tempfile::tempdir().unwrap();
        let (path, name) = (dir.path().join("draft"), dir.path().join("a"));
        fs::write(&path, "left by an agent that was killed").unwrap();
        fs::write(&name, "another, and longer").unwrap();
        let mut draft = Draft::at(path.clone());
        assert!(!draft.finish(&name, b"first"), "none lies ready");
        draft.prepare();
        assert!(draft.finish(&name, b"second"));
        assert_eq!(fs::read(&name).unwrap(), b"second");
        assert!(!path.exists() && !draft.finish(&name, b"third"));
    }

    #[test]
    fn one_that_somebody_removed_is_none_and_none_stays_behind() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("draft");
        let mut draft = Draft::at(path.clone());
        draft.prepare();
        fs::remove_file(&path).unwrap();
        assert!(!draft.finish(&dir.path().join("a"), b"lost"));
        draft.prepare();
        let nowhere = dir.path().join("none/a");
        assert!(path.exists() && !draft.finish(&nowhere, b"refused") && !path.exists());
        draft.prepare();
        drop(draft);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}

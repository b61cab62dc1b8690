//! What is known of the cluster, in a file of the state directory: an agent that starts without an API server goes on with it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use shunt_regular_file::{Outlives, read_own, replace};

use super::Members;

/// The file's name in the state directory.
const FILE: &str = "cluster.json";

/// As many bytes are read: five thousand nodes have one million.
const LONGEST: u64 = 16 << 20;

fn path(state_dir: &Path) -> PathBuf {
    state_dir.join(FILE)
}

/// What an earlier agent knew; nobody where there is no such file, or it cannot be read.
pub(crate) fn read(state_dir: &Path) -> Members {
    let path = path(state_dir);
    let text = match read_own(&path, LONGEST) {
        Ok(text) => text,
        Err(error) => {
            if error.kind() != io::ErrorKind::NotFound {
                tracing::warn!(file = %path.display(), %error, "what was known of the cluster cannot be read");
            }
            return Members::default();
        }
    };
    serde_json::from_slice(&text).unwrap_or_else(|error| {
        tracing::warn!(file = %path.display(), %error, "what was known of the cluster cannot be read");
        Members::default()
    })
}

/// Writes it down.
///
/// # Errors
/// The file system's; the file is as it was.
pub(crate) fn write(state_dir: &Path, members: &Members) -> io::Result<()> {
    fs::create_dir_all(state_dir)?;
    replace(&path(state_dir), &*serde_json::to_vec(members)?, 0o600, Outlives::Power)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_agent_of_the_release_before_or_the_next_one_has_written_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let text = r#"{"a":{"pod_cidrs":["10.244.1.0/24","fd01::/64"],"addresses":["192.0.2.1"]},
            "b":{"pod_cidrs":[],"created":7,"addresses":[],"of-the-next-release":{}}}"#;
        fs::write(path(dir.path()), text).unwrap();
        let known = read(dir.path());
        assert_eq!((known.0["a"].pod_cidrs.len(), known.0["a"].created, known.0["b"].created), (2, 0, 7));
    }

    #[test]
    fn what_was_written_is_read_and_what_is_torn_is_nothing() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(read(dir.path()), Members::default());
        let members = Members([("a".to_owned(), super::super::Member::default())].into());
        write(dir.path(), &members).unwrap();
        assert_eq!(read(dir.path()), members);
        fs::write(path(dir.path()), "{\"a\":").unwrap();
        assert_eq!(read(dir.path()), Members::default());
    }
}

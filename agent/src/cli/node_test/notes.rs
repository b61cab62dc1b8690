//! Notes of the test's containers, beside their namespaces.
//!
//! In: a container's id and the network that it is added to. Out: a file of each, written before the container is added and removed once it
//! is deleted. By the notes of a test that was killed the next one, and an uninstallation, deletes its containers: only so their addresses and
//! host ports are given back. Programs are looked for where the caller looks for them, wherever a note comes from.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Map, Value, json};
use shunt_regular_file::{Outlives, read_own, remove, replace};

use super::chain::{Call, Chain, ChainError};
use super::other_bridge;
use super::undeleted::Undeleted;

/// What the ids of the test's containers begin with.
const MARK: &str = "shunt-test-";

const END: &str = ".json";

/// Bytes of a note: a configuration has 1 MiB at most.
const LONGEST: u64 = 4 << 20;

/// A note's content.
#[derive(Deserialize)]
struct Note {
    network: Chain,
    /// What was asked of plugins that have the capability.
    runtime: Map<String, Value>,
}

/// Why a container is there still.
#[derive(Debug, thiserror::Error)]
enum ReleaseError {
    #[error("its note cannot be read: {0}")]
    Note(#[from] io::Error),
    #[error(transparent)]
    Chain(#[from] ChainError),
}

/// The id of the container of this test whose namespace has this name.
pub(super) fn id(name: &str) -> String {
    format!("{MARK}{}-{name}", std::process::id())
}

/// The name of a container's namespace.
fn name_of(id: &str) -> Option<&str> {
    Some(id.strip_prefix(MARK)?.split_once('-')?.1)
}

/// Whether a file has the name of a note.
pub(super) fn is_note(name: &str) -> bool {
    name.strip_suffix(END).and_then(name_of).is_some()
}

/// Whether a file has the name of a note that is not whole.
pub(super) fn is_unfinished(name: &str) -> bool {
    name.strip_prefix('.').and_then(|name| name.strip_suffix(".new")).is_some_and(is_note)
}

/// Where a container's note is.
pub(super) fn path(directory: &Path, id: &str) -> PathBuf {
    directory.join(format!("{id}{END}"))
}

/// Notes a container that is about to be added.
///
/// # Errors
/// The file system's.
pub(super) fn write(
    directory: &Path,
    id: &str,
    network: &Chain,
    runtime: &Map<String, Value>,
) -> io::Result<()> {
    let note = json!({ "network": network, "runtime": runtime }).to_string();
    replace(&path(directory, id), note.as_bytes(), 0o600, Outlives::Process)
}

/// The containers that are noted in a directory, which may be absent.
pub(super) fn ids(directory: &Path) -> Vec<String> {
    let names = fs::read_dir(directory).into_iter().flatten().flatten();
    let names = names.filter_map(|entry| entry.file_name().into_string().ok()).filter(|name| is_note(name));
    let mut ids: Vec<_> = names.filter_map(|name| Some(name.strip_suffix(END)?.to_owned())).collect();
    ids.sort();
    ids
}

/// Deletes the containers that are noted in a directory. One that cannot be deleted is told, and its note stays.
pub(super) fn release(directory: &Path, bin_dirs: &[PathBuf], undeleted: &Undeleted) {
    for id in ids(directory) {
        let note = path(directory, &id);
        let released = delete(directory, &id, bin_dirs, undeleted);
        if let Err(error) = released.and_then(|()| remove(&note).map_err(ReleaseError::from)) {
            let note = note.display();
            undeleted.tell(format!(
                "container {id} of an earlier test: {error}; the next test tries again, unless {note} is removed"
            ));
        }
    }
}

fn delete(
    directory: &Path,
    id: &str,
    bin_dirs: &[PathBuf],
    undeleted: &Undeleted,
) -> Result<(), ReleaseError> {
    let text = read_own(&path(directory, id), LONGEST)?;
    let Note { network, runtime } = serde_json::from_slice(&text).map_err(io::Error::from)?;
    let network = network.run_from(bin_dirs);
    let name = name_of(id).unwrap_or_default();
    let held = directory.join(name);
    // One that is gone is no path for a plugin (CNI specification, section 2).
    let netns = if held.exists() { &*held } else { Path::new("") };
    network.delete(Call { id, netns, runtime: &runtime }, &Value::Null)?;
    if name == other_bridge::CONTAINER {
        other_bridge::take_down(&network, undeleted);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn network() -> Chain {
        let list = json!({ "name": "pods", "cniVersion": "1.0.0", "plugins": [{ "type": "shunt" }] });
        serde_json::from_value(list).unwrap()
    }

    #[test]
    fn a_container_is_deleted_by_its_note_and_one_that_cannot_be_stays_noted_and_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let [held, bin] = ["held", "bin"].map(|name| dir.path().join(name));
        fs::create_dir(&held).unwrap();
        fs::create_dir(&bin).unwrap();
        let id = id("kernel-left");
        assert_eq!(name_of(&id), Some("kernel-left"));
        write(&held, &id, &network(), &Map::new()).unwrap();
        fs::write(held.join("words.json"), "{}").unwrap();
        assert_eq!(ids(&held), [&*id]);
        for (program, word) in [(None, "cannot be run"), (Some("/bin/false"), "refuses")] {
            program.into_iter().for_each(|program| symlink(program, bin.join("shunt")).unwrap());
            let undeleted = Undeleted::default();
            release(&held, std::slice::from_ref(&bin), &undeleted);
            let told = undeleted.all();
            assert!(told.len() == 1 && told[0].contains(word) && told[0].contains(&id), "{told:?}");
        }
        fs::remove_file(bin.join("shunt")).unwrap();
        symlink("/bin/true", bin.join("shunt")).unwrap();
        let undeleted = Undeleted::default();
        release(&held, &[dir.path().join("none"), bin], &undeleted);
        assert!(undeleted.all().is_empty() && ids(&held).is_empty(), "{:?}", undeleted.all());
        assert_eq!(fs::read_dir(&held).unwrap().count(), 1, "what is no note stays");
    }

    #[test]
    fn a_note_that_nobody_can_read_is_told_and_runs_no_program() {
        let dir = tempfile::tempdir().unwrap();
        let path = path(dir.path(), &id("one"));
        let elsewhere = r#"{"network": {"name": "a", "plugins": [{"type": "/bin/true"}]}, "runtime": {}}"#;
        for text in ["{", elsewhere] {
            fs::write(&path, text).unwrap();
            let undeleted = Undeleted::default();
            release(dir.path(), &["/".into()], &undeleted);
            assert!(undeleted.all().len() == 1 && path.exists(), "{text}");
        }
        assert!(!is_note("shunt-test-7.json") && !is_note("one") && is_note("shunt-test-7-one.json"));
    }
}

//! The state directory: names and sizes for the report, and what names are in it.

use std::collections::VecDeque;
use std::fs::{self, DirEntry};
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use shunt_regular_file::read_own;

use super::part::{Had, Job, Lack};

/// The file whose keys are nodes' names.
const NODES: &str = "cluster.json";

/// The field whose keys are those of Kubernetes' namespaces.
const NAMESPACES: &str = "namespaces";

/// Entries that are listed or read at most: twice as many as attachments fit on a node.
const MOST: usize = 20_000;

/// Bytes of one file that are read for its names.
const LONGEST: u64 = 1 << 20;

pub(super) fn jobs(state_dir: &Path) -> Vec<Job> {
    let state_dir = state_dir.to_path_buf();
    vec![Job::new("state.json", move |_| listing(&state_dir))]
}

fn listing(state_dir: &Path) -> Result<Had, Lack> {
    let (entries, is_cut) = entries(state_dir)
        .map_err(|error| Lack::of(&format!("the state directory {}", state_dir.display()), &error))?;
    let listed: Vec<_> = entries
        .iter()
        .map(|path| {
            let bytes = path.symlink_metadata().ok().map(|metadata| metadata.len());
            let path = path.strip_prefix(state_dir).unwrap_or(path).display().to_string();
            json!({ "file": path, "bytes": bytes })
        })
        .collect();
    Ok(Had::json(listed)?.noting(is_cut.then(|| format!("cut: the first {MOST} files"))))
}

/// The files below a directory, and whether there are more. Links are not followed.
fn entries(state_dir: &Path) -> io::Result<(Vec<PathBuf>, bool)> {
    let mut files = Vec::new();
    let mut directories = VecDeque::from([state_dir.to_path_buf()]);
    while let Some(directory) = directories.pop_front() {
        let entries = match fs::read_dir(&directory) {
            // It may have gone meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound && directory != state_dir => continue,
            entries => entries?,
        };
        for entry in entries {
            let entry: DirEntry = entry?;
            if files.len() + directories.len() >= MOST {
                return Ok((files, true));
            }
            match entry.file_type()?.is_dir() {
                true => directories.push_back(entry.path()),
                false => files.push(entry.path()),
            }
        }
    }
    files.sort();
    Ok((files, false))
}

/// What a state file holds, for its names.
pub(super) struct StateFile {
    pub(super) value: Value,
    /// The keys of a file whose keys are names.
    pub(super) keys: Vec<String>,
    /// Its name without what tells its kind.
    pub(super) stem: Option<String>,
}

/// What can be read of the state directory.
pub(super) fn contents(state_dir: &Path) -> Vec<StateFile> {
    let files = entries(state_dir).map(|(files, _)| files).unwrap_or_default();
    files.iter().map(|path| read(path)).collect()
}

fn read(path: &Path) -> StateFile {
    let text = read_own(path, LONGEST).unwrap_or_default();
    let value: Value = serde_json::from_slice(&text).unwrap_or_default();
    let mut keys = Vec::new();
    add_keys(&value, path.file_name().is_some_and(|name| name == NODES), &mut keys);
    let stem = path.file_stem().and_then(|stem| stem.to_str()).map(str::to_owned);
    StateFile { value, keys, stem }
}

/// The keys of a map that has names as keys, and of such maps in it.
fn add_keys(value: &Value, is_named: bool, keys: &mut Vec<String>) {
    let Value::Object(fields) = value else { return };
    keys.extend(fields.keys().filter(|_| is_named).cloned());
    for (name, value) in fields {
        add_keys(value, name == NAMESPACES, keys);
    }
}

#[cfg(test)]
mod tests {
    use super::super::part::Content;
    use super::*;

    #[test]
    fn files_are_listed_by_name_and_size_and_not_by_content() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("attachments")).unwrap();
        fs::write(dir.path().join("attachments/net@c1@eth0.json"), r#"{"port":{"netns":"/x/y"}}"#).unwrap();
        fs::write(dir.path().join("cluster.json"), r#"{"node-a":{"pod_cidrs":[]}}"#).unwrap();
        let Had { content: Content::Json(listed), note: None } = listing(dir.path()).ok().unwrap() else {
            panic!("no list")
        };
        let expected = json!([{ "file": "attachments/net@c1@eth0.json", "bytes": 25 },
            { "file": "cluster.json", "bytes": 27 }]);
        assert_eq!(listed, expected);
        fs::write(dir.path().join("departed.json"), r#"{"x":{"namespaces":{"team":{"from":{}}}}}"#).unwrap();
        let contents = contents(dir.path());
        assert_eq!(contents[0].value["port"]["netns"], "/x/y");
        assert_eq!(
            (&contents[1].keys[..], &contents[2].keys[..]),
            (&["node-a".to_owned()][..], &["team".to_owned()][..])
        );
        assert!(matches!(listing(&dir.path().join("none")), Err(Lack::Absent(_))));
    }
}

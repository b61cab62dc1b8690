//! Registered networks: one file each, which outlives the agent.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;
use shunt::call::check_identifier;
use shunt_regular_file::{Outlives, read_own, remove};

use crate::failure::{Failure, codes};
use crate::files;
use crate::list::NetworkList;

/// Networks that are kept.
const MOST: usize = 1024;

/// Bytes of a list.
const LONGEST: u64 = 1 << 20;

const EXTENSION: &str = "conflist";

/// The directory of the registered networks.
#[derive(Debug)]
pub(crate) struct Networks(PathBuf);

impl Networks {
    pub(crate) fn in_directory(directory: &Path) -> Self {
        Self(directory.to_path_buf())
    }

    /// Keeps a list under its name. The same list again changes nothing.
    ///
    /// # Errors
    /// Code 106: the name has another list; 11: there are too many; 5: the file system's.
    pub(crate) fn register(&self, list: &NetworkList) -> Result<(), Failure> {
        let path = self.file(&list.name);
        match read_own(&path, LONGEST) {
            Ok(known) if is_same(&known, &list.raw) => return Ok(()),
            Ok(_) => {
                let why = format!(
                    "the network {} is registered with another configuration: unregister it first",
                    list.name
                );
                return Err(Failure::new(codes::EXISTS, why));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(&path, &error)),
        }
        if self.names().len() >= MOST {
            return Err(Failure::new(
                codes::TRY_AGAIN,
                format!("{MOST} networks are registered already: unregister some"),
            ));
        }
        files::write(&path, &list.raw, Outlives::Power).map_err(|error| failed(&path, &error))
    }

    /// The list of this name.
    ///
    /// # Errors
    /// Code 7: there is none; 5: the file system's.
    pub(crate) fn read(&self, name: &str) -> Result<NetworkList, Failure> {
        check_identifier("network name", name)
            .map_err(|error| Failure::new(codes::INVALID_CONFIG, error.to_string()))?;
        let path = self.file(name);
        match read_own(&path, LONGEST) {
            Ok(raw) => NetworkList::read(&raw),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(Failure::new(codes::INVALID_CONFIG, format!("no network {name} is registered")))
            }
            Err(error) => Err(failed(&path, &error)),
        }
    }

    /// Forgets a network, which need not be there.
    ///
    /// # Errors
    /// Code 5.
    pub(crate) fn unregister(&self, name: &str) -> Result<(), Failure> {
        let path = self.file(name);
        remove(&path).map_err(|error| failed(&path, &error))
    }

    /// The names, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let paths = fs::read_dir(&self.0).into_iter().flatten().flatten().map(|entry| entry.path());
        let kept = paths.filter(|path| path.extension().is_some_and(|extension| extension == EXTENSION));
        let mut names: Vec<_> =
            kept.filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned())).collect();
        names.sort();
        names
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(format!("{name}.{EXTENSION}"))
    }
}

/// Whether both are the same object, whatever the order of their keys.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    let read = |raw| serde_json::from_slice::<Value>(raw).ok();
    read(one).is_some_and(|one| Some(one) == read(other))
}

fn failed(path: &Path, error: &io::Error) -> Failure {
    Failure::new(codes::IO, format!("the registered network {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> NetworkList {
        NetworkList::read(text.as_bytes()).unwrap()
    }

    #[test]
    fn a_network_is_kept_under_its_name_until_it_is_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let networks = Networks::in_directory(&folder.path().join("networks"));
        assert!(networks.names().is_empty());
        networks.register(&list(r#"{"name":"b.x","plugins":[{"type":"shunt"}]}"#)).unwrap();
        networks.register(&list(r#"{"name":"a","plugins":[{"type":"shunt"}]}"#)).unwrap();
        networks.register(&list(r#"{"plugins":[{"type":"shunt"}],"name":"a"}"#)).unwrap();
        let other = networks.register(&list(r#"{"name":"a","plugins":[{"type":"bridge"}]}"#)).unwrap_err();
        assert_eq!(other.code, codes::EXISTS);
        assert_eq!(networks.names(), ["a", "b.x"]);
        assert_eq!(networks.read("a").unwrap().plugins[0].kind, "shunt");
        networks.unregister("a").unwrap();
        networks.unregister("a").unwrap();
        assert_eq!(networks.read("a").unwrap_err().code, codes::INVALID_CONFIG);
        assert_eq!(networks.read("../a").unwrap_err().code, codes::INVALID_CONFIG);
    }
}

//! Which configuration is tried: the one of ours that a runtime would take, from libcni's files.
//!
//! A list of plugins is read from `*.conflist`, and one plugin, which is a list of one, from `*.conf` and `*.json`. A file that is named
//! may have any name.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::chain::Chain;

/// The longest configuration.
const MOST: u64 = 1 << 20;

/// The name's end of a list, and of a plugin alone.
const LIST: &str = "conflist";
const PLUGIN: [&str; 2] = ["conf", "json"];

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConflistError {
    #[error("{path} cannot be read: {source}")]
    Read { path: PathBuf, source: io::Error },
    #[error("{path} is no network configuration: {source}")]
    Parse { path: PathBuf, source: serde_json::Error },
    #[error("{0} has neither plugins nor a type")]
    Empty(PathBuf),
    #[error("{0} is read by no runtime: a list is in a *.conflist, one plugin in a *.conf or *.json")]
    Name(PathBuf),
    #[error("no configuration in {directory} names shunt: say one with --conflist{}", beside(broken))]
    None { directory: PathBuf, broken: Vec<ConflistError> },
}

fn beside(broken: &[ConflistError]) -> String {
    broken.iter().map(|error| format!("; {error}")).collect()
}

/// Reads a file, or the first of a directory in the order of names that names shunt.
///
/// # Errors
/// [`ConflistError`]; that no file names shunt says also which could not be read.
pub(super) fn find(path: &Path, bin_dirs: &[PathBuf]) -> Result<Chain, ConflistError> {
    if !path.is_dir() {
        return read(path).and_then(|config| chain(path, config, bin_dirs));
    }
    let failed = |source| ConflistError::Read { path: path.to_path_buf(), source };
    let entries = fs::read_dir(path).map_err(failed)?;
    let mut files: Vec<_> = entries.filter_map(|file| Some(file.ok()?.path())).collect();
    files.retain(|file| has_extension(file, &[LIST]) || has_extension(file, &PLUGIN));
    files.sort();
    let mut broken = Vec::new();
    for file in files {
        match read_as_runtimes_do(&file, bin_dirs) {
            Ok(chain) if chain.is_ours() => return Ok(chain),
            Ok(_) => {}
            Err(error) => broken.push(error),
        }
    }
    Err(ConflistError::None { directory: path.to_path_buf(), broken })
}

fn has_extension(path: &Path, of: &[&str]) -> bool {
    path.extension().and_then(|extension| extension.to_str()).is_some_and(|extension| of.contains(&extension))
}

fn read_as_runtimes_do(path: &Path, bin_dirs: &[PathBuf]) -> Result<Chain, ConflistError> {
    let config = read(path)?;
    if is_list(&config) != has_extension(path, &[LIST]) {
        return Err(ConflistError::Name(path.to_path_buf()));
    }
    chain(path, config, bin_dirs)
}

fn read(path: &Path) -> Result<Value, ConflistError> {
    let mut text = String::new();
    let read = shunt_regular_file::open(path).and_then(|file| file.take(MOST).read_to_string(&mut text));
    read.map_err(|source| ConflistError::Read { path: path.to_path_buf(), source })?;
    serde_json::from_str(&text).map_err(|source| ConflistError::Parse { path: path.to_path_buf(), source })
}

fn is_list(config: &Value) -> bool {
    config.get("plugins").is_some()
}

fn chain(path: &Path, config: Value, bin_dirs: &[PathBuf]) -> Result<Chain, ConflistError> {
    let list = if is_list(&config) {
        config
    } else if config.get("type").is_some() {
        list_of_one(&config)
    } else {
        return Err(ConflistError::Empty(path.to_path_buf()));
    };
    let chain: Result<Chain, _> = serde_json::from_value(list);
    let chain = chain.map_err(|source| ConflistError::Parse { path: path.to_path_buf(), source })?;
    Ok(chain.run_from(bin_dirs))
}

/// What libcni's `ConfListFromConf` makes of a plugin.
fn list_of_one(plugin: &Value) -> Value {
    let own = |key: &str| Some((key.to_owned(), plugin.get(key)?.clone()));
    let named: Map<_, _> = ["name", "cniVersion"].into_iter().filter_map(own).collect();
    let mut list = Value::Object(named);
    list["plugins"] = json!([plugin]);
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(directory: &Path, name: &str, text: &str) {
        fs::write(directory.join(name), text).unwrap();
    }

    fn refused(path: &Path) -> String {
        find(path, &[]).unwrap_err().to_string()
    }

    #[test]
    fn the_first_that_names_shunt_is_taken() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        assert!(refused(path).ends_with("names shunt: say one with --conflist"), "{}", refused(path));
        file(path, "05-broken.conflist", "{");
        file(path, "10-other.conflist", r#"{ "name": "a", "plugins": [{ "type": "bridge" }] }"#);
        file(path, "20-ours.conflist", r#"{ "name": "b", "plugins": [{ "type": "shunt" }] }"#);
        file(path, "15-ours.txt", r#"{ "name": "c", "plugins": [{ "type": "shunt" }] }"#);
        assert_eq!(find(path, &[]).unwrap().name(), "b");
        assert_eq!(find(&path.join("15-ours.txt"), &[]).unwrap().name(), "c");
        let broken = find(&path.join("05-broken.conflist"), &[]).unwrap_err();
        assert!(matches!(broken, ConflistError::Parse { .. }), "{broken}");
    }

    #[test]
    fn a_plugin_alone_is_a_list_of_one() {
        for name in ["10-ours.conf", "10-ours.json"] {
            let directory = tempfile::tempdir().unwrap();
            let ours = r#"{ "name": "a", "type": "shunt", "capabilities": { "ips": true } }"#;
            file(directory.path(), name, ours);
            let chain = find(directory.path(), &[]).unwrap();
            assert!(chain.name() == "a" && chain.is_of_bridge() && chain.has_capability("ips"), "{name}");
        }
    }

    #[test]
    fn files_that_cannot_be_read_are_named_where_none_names_shunt() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        let (list, plugin) =
            (r#"{ "name": "a", "plugins": [{ "type": "shunt" }] }"#, r#"{ "name": "a", "type": "shunt" }"#);
        file(path, "10-a.conf", "{");
        file(path, "20-b.conf", list);
        file(path, "30-c.conflist", plugin);
        file(path, "40-d.json", r#"{ "type": "shunt" }"#);
        fs::create_dir(path.join("50-e.json")).unwrap();
        let told = refused(path);
        for word in
            ["10-a.conf is no network", "20-b.conf is read by no runtime", "30-c.conflist is read by no"]
        {
            assert!(told.contains(word), "{word}: {told}");
        }
        assert!(told.contains("missing field `name`") && told.contains("50-e.json cannot be read"), "{told}");
        file(path, "words", "{}");
        assert!(refused(&path.join("words")).ends_with("has neither plugins nor a type"));
    }
}

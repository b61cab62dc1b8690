//! Network configurations, CNI's and podman's, that name a plugin of shunt's: with the plugin gone, their containers could not even be deleted.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::obstacle::Obstacle;

/// The runtimes' names of files (libcni).
const EXTENSIONS: [&str; 3] = ["conf", "conflist", "json"];

/// What the names of shunt's own plugins begin with.
const OURS: &str = "shunt";

/// A network that names a plugin of shunt's.
struct Naming {
    file: String,
    plugin: String,
}

/// An obstacle for each such name. What is no configuration is no obstacle, nor is `own`, which the agent has written.
pub(super) fn obstacles(directory: &Path, own: Option<&Path>) -> Vec<Obstacle> {
    let found = naming(directory, own).into_iter();
    found.map(|Naming { file, plugin }| Obstacle::Configured { file, plugin }).collect()
}

/// The same, where the plugins are gone already: what to do about each name.
pub(super) fn warnings(directory: &Path, own: Option<&Path>) -> Vec<String> {
    let found = naming(directory, own).into_iter();
    let warning = |Naming { file, plugin }| {
        format!("{file}: names the plugin {plugin}, which is gone; name another one or remove the file")
    };
    found.map(warning).collect()
}

fn naming(directory: &Path, own: Option<&Path>) -> Vec<Naming> {
    let mut found = Vec::new();
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    for path in entries.map(|entry| entry.path()) {
        if own == Some(&*path) || !is_read(&path) {
            continue;
        }
        let read = fs::read(&path).ok().and_then(|text| serde_json::from_slice::<Value>(&text).ok());
        let Some(config) = read else { continue };
        let file = path.display().to_string();
        let listed = config["plugins"].as_array().into_iter().flatten().chain([&config]);
        let names = listed.flat_map(|plugin| [&plugin["type"], &plugin["ipam"]["type"], &plugin["driver"]]);
        let names = names.filter_map(Value::as_str).filter(|name| is_ours(name));
        found.extend(names.map(|name| Naming { file: file.clone(), plugin: name.to_owned() }));
    }
    found
}

/// Whether runtimes read another configuration than `own`.
pub(super) fn are_others(directory: &Path, own: &Path) -> bool {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).any(|path| path != own && is_read(&path))
}

/// Whether the file's name is one that runtimes look for.
fn is_read(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    extension.is_some_and(|extension| EXTENSIONS.contains(&extension)) && path.is_file()
}

fn is_ours(name: &str) -> bool {
    name.strip_prefix(OURS).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_plugin_of_ours_that_a_configuration_names_is_found() {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in [
            (
                "10-a.conflist",
                r#"{"plugins": [{"type": "bridge", "ipam": {"type": "shunt-ipam"}}, {"type": "portmap"}]}"#,
            ),
            ("20-b.conf", r#"{"type": "shunt"}"#),
            ("30-c.conf", r#"{"type": "shunting"}"#),
            ("40-d.conf", "{"),
            ("50-e.bak", r#"{"type": "shunt"}"#),
            // As podman keeps a network.
            ("pods.json", r#"{"name": "pods", "driver": "shunt"}"#),
            ("podman.json", r#"{"name": "podman", "driver": "bridge"}"#),
        ] {
            fs::write(dir.path().join(name), text).unwrap();
        }
        let mut found: Vec<_> = obstacles(dir.path(), None).iter().map(ToString::to_string).collect();
        found.sort();
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found[0].contains("10-a.conflist") && found[0].contains("shunt-ipam"));
        assert!(found[1].contains("20-b.conf"));
        assert!(found[2].contains("pods.json"));
        let mut warnings = warnings(dir.path(), None);
        warnings.sort();
        assert!(warnings[1].contains("20-b.conf: names the plugin shunt, which is gone"), "{warnings:?}");
        let own = dir.path().join("20-b.conf");
        let others = obstacles(dir.path(), Some(&own));
        assert!(others.iter().all(|obstacle| !obstacle.to_string().contains("20-b.conf")), "{others:?}");
        assert_eq!(others.len(), found.len() - 1, "it goes with the agent that has written it");
        assert!(obstacles(&dir.path().join("none"), None).is_empty());
    }
}

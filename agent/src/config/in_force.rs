//! The configuration that is in force, key by key.

use shunt_agent_api::{ConfigKey, ConfigOrigin, ConfigReport};

use super::Config;
use super::key::Key;
use super::origins::leaves;
use crate::capacity::{NODE_NAME, node_name};

/// The node's name, which the environment or the host has where the file has none.
const NODE: &str = "kubernetes.node";

impl Config {
    /// Every key with its value and where that comes from. No key holds a secret: credentials are in files of their own, of which only the
    /// paths are said.
    pub fn report(&self) -> ConfigReport {
        let keys = leaves(serde_json::to_value(self).unwrap_or_default()).into_iter().map(|(key, value)| {
            let key = key.to_string();
            ConfigKey { origin: self.origins.of_key(&key), key, value }
        });
        let mut keys: Vec<ConfigKey> = keys.chain(self.origins.keyless().iter().cloned()).collect();
        if let Some(node) = keys.iter_mut().find(|entry| entry.key == NODE && entry.value.is_null()) {
            node.value = node_name().into();
            if std::env::var_os(NODE_NAME).is_some() {
                node.origin = ConfigOrigin::Environment { name: NODE_NAME.to_owned() };
            }
        }
        ConfigReport { file: self.origins.file().map(str::to_owned), keys }
    }

    /// The full name of an uplink's section.
    pub fn uplink_key(name: &str) -> String {
        Key::default().child("uplinks").child(name).to_string()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::{Value, json};

    use super::super::{ConfigFile, Options};
    use super::*;
    use crate::capacity::UplinkOptions;

    fn of<'a>(report: &'a ConfigReport, key: &str) -> (&'a Value, &'a ConfigOrigin) {
        let found = report.keys.iter().find(|entry| entry.key == key);
        found.map(|entry| (&entry.value, &entry.origin)).unwrap_or_else(|| panic!("{key}: {report:?}"))
    }

    #[test]
    fn every_value_is_said_with_where_it_comes_from() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("agent.toml");
        let text = "socket = '/file'\nstate_dir = '/state'\n[uplinks.\"eth0.5\"]\negress = 1000000000\nfactor = 1.5\n\
                    [kubernetes]\npublish = 'node'\n";
        fs::write(&path, text).unwrap();
        let file = ConfigFile::open(&path).unwrap();
        let flags = Options {
            socket: Some("/flag".into()),
            uplinks: [("eth1".to_owned(), UplinkOptions::default())].into(),
            ..Options::default()
        };
        let report = Config::resolve(Some(&file), flags).unwrap().report();
        let line = |line| ConfigOrigin::File { line };
        let flag = |name: &str| ConfigOrigin::Flag { name: name.to_owned() };
        for (key, value, origin) in [
            ("socket", json!("/flag"), flag("--socket")),
            ("state_dir", json!("/state"), line(2)),
            ("bpffs", json!("/sys/fs/bpf/shunt"), ConfigOrigin::Default),
            ("mark_mask", json!(0x1060), ConfigOrigin::Default),
            ("group", Value::Null, ConfigOrigin::Default),
            ("uplinks.\"eth0.5\".egress", json!("1G"), line(4)),
            ("uplinks.\"eth0.5\".factor", json!(1.5), line(5)),
            ("uplinks.eth1.factor", json!(1.0), ConfigOrigin::Default),
            ("kubernetes.publish", json!("node"), line(7)),
            ("kubernetes.dra", json!(true), ConfigOrigin::Default),
            ("cluster.enabled", json!(false), ConfigOrigin::Default),
        ] {
            assert_eq!(of(&report, key), (&value, &origin), "{key}");
        }
        assert!(of(&report, NODE).0.is_string());
        assert_eq!(report.file.as_deref(), path.to_str());
    }

    #[test]
    fn without_a_file_everything_is_a_default() {
        let report = Config::resolve(None, Options::default()).unwrap().report();
        assert!(report.keys.len() > 15, "{report:?}");
        assert!(report.keys.iter().all(|entry| entry.origin == ConfigOrigin::Default), "{report:?}");
        assert_eq!(report.file, None);
    }

    #[test]
    fn a_path_that_is_no_text_is_said_as_well_as_it_can_be() {
        use std::os::unix::ffi::OsStringExt as _;
        let odd = std::ffi::OsString::from_vec(b"/run/\xff".to_vec());
        let flags = Options { socket: Some(odd.into()), ..Options::default() };
        let report = Config::resolve(None, flags).unwrap().report();
        assert_eq!(of(&report, "socket").0, "/run/\u{fffd}");
    }
}

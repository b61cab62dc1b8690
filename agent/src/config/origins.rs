//! Where the values of a configuration come from.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use shunt_agent_api::{ConfigKey, ConfigOrigin};

use super::file::ConfigFile;
use super::key::Key;
use super::options::Options;

/// Where the values of a configuration come from: what is in neither the file nor the flags is a default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origins {
    file: Option<String>,
    lines: BTreeMap<String, usize>,
    flags: BTreeSet<String>,
    /// What is in force and has no key.
    keyless: Vec<ConfigKey>,
}

impl Origins {
    /// Of the keys of a file, and of the options that flags gave.
    pub fn of(file: Option<&ConfigFile>, flags: &Options) -> Self {
        let lines = file.map(ConfigFile::lines).unwrap_or_default();
        let options = serde_json::to_value(flags).unwrap_or_default();
        let given = leaves(options).into_iter().filter(|(_, value)| !value.is_null());
        let keys = given.map(|(key, _)| key.to_string()).filter(|key| !key.starts_with("uplinks"));
        // A flag only names an uplink.
        let named = flags.uplinks.keys().map(|name| Key::default().child("uplinks").child(name).to_string());
        Self {
            file: file.map(|file| file.path().display().to_string()),
            lines: lines.into_iter().map(|(key, line)| (key.to_string(), line)).collect(),
            flags: keys.chain(named).collect(),
            keyless: Vec::new(),
        }
    }

    /// The same with what is in force and has no key in the file.
    #[must_use]
    pub fn with_keyless(self, keyless: Vec<ConfigKey>) -> Self {
        Self { keyless, ..self }
    }

    /// The file.
    pub fn file(&self) -> Option<&str> {
        self.file.as_deref()
    }

    /// Where a key's value comes from. A flag wins.
    pub fn of_key(&self, key: &str) -> ConfigOrigin {
        match self.line(key) {
            _ if self.flags.contains(key) => ConfigOrigin::Flag { name: flag(key) },
            Some(line) => ConfigOrigin::File { line },
            None => ConfigOrigin::Default,
        }
    }

    /// The key's line in the file.
    pub fn line(&self, key: &str) -> Option<usize> {
        self.lines.get(key).copied()
    }

    /// Whether the file or a flag has the key or the section.
    pub fn is_given(&self, key: &str) -> bool {
        self.flags.contains(key) || self.lines.contains_key(key)
    }

    /// What is in force and has no key.
    pub fn keyless(&self) -> &[ConfigKey] {
        &self.keyless
    }
}

/// The flag of a key.
fn flag(key: &str) -> String {
    let name = if key.starts_with("uplinks") { "uplink".to_owned() } else { key.replace('_', "-") };
    format!("--{name}")
}

/// The values of an object by their keys. A list is a value, and so is an object without keys.
pub(super) fn leaves(object: Value) -> Vec<(Key, Value)> {
    let mut found = Vec::new();
    collect(object, &Key::default(), &mut found);
    found
}

fn collect(value: Value, section: &Key, found: &mut Vec<(Key, Value)>) {
    match value {
        Value::Object(keys) if !keys.is_empty() => {
            for (name, value) in keys {
                collect(value, &section.child(&name), found);
            }
        }
        value => found.push((section.clone(), value)),
    }
}

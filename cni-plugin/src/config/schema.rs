//! The configuration as a JSON Schema, made from the types that read it and checked in as `schema/config.json`.
//!
//! `UPDATE_GOLDEN=1` writes the file anew.

use std::path::Path;

use schemars::JsonSchema;
use serde_json::Value;

use super::canonical::is_known;
use super::{Bridge, Network, Vlan};

/// A configuration of `shunt`, `bridge`, `vlan` and their like: what every network has, what a bridge's port has, and what a
/// VLAN's interface has.
#[derive(JsonSchema)]
#[schemars(title = "shunt network configuration")]
#[allow(dead_code, reason = "only its schema is wanted")]
struct Configuration {
    #[schemars(flatten)]
    network: Network,
    #[schemars(flatten)]
    bridge: Bridge,
    #[schemars(flatten)]
    vlan: Vlan,
}

fn schema() -> Value {
    serde_json::to_value(schemars::schema_for!(Configuration)).unwrap()
}

/// Every property's name, wherever it is.
fn properties(schema: &Value, found: &mut Vec<String>) {
    match schema {
        Value::Object(object) => {
            if let Some(Value::Object(properties)) = object.get("properties") {
                found.extend(properties.keys().cloned());
            }
            object.values().for_each(|member| properties(member, found));
        }
        Value::Array(items) => items.iter().for_each(|item| properties(item, found)),
        _ => {}
    }
}

#[test]
fn the_checked_in_schema_is_that_of_the_types() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("schema/config.json");
    let current = format!("{:#}\n", schema());
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &current).unwrap();
    }
    assert_eq!(std::fs::read_to_string(path).unwrap(), current);
}

#[test]
fn every_key_of_the_types_is_known_in_its_exact_case() {
    let mut found = Vec::new();
    properties(&schema(), &mut found);
    assert!(found.len() > 50, "{}", found.len());
    let unknown: Vec<_> = found.into_iter().filter(|key| !is_known(key)).collect();
    assert_eq!(unknown, Vec::<String>::new());
}

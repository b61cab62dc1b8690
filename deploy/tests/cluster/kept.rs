//! The objects of the manifests in the repository.

use std::fs;
use std::path::Path;

use serde_json::Value;
use shunt_deploy::MANIFESTS;

pub(crate) fn checkout() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// The manifest that installs, and the one that uninstalls.
pub(crate) const INSTALL: usize = 0;
pub(crate) const UNINSTALL: usize = 1;

/// The text of a manifest as it is kept.
pub(crate) fn text(manifest: usize) -> String {
    fs::read_to_string(checkout().join(MANIFESTS[manifest].path)).unwrap()
}

/// The objects in a manifest's text.
pub(crate) fn objects(text: &str) -> Vec<Value> {
    let all: Vec<Value> = serde_saphyr::from_multiple(text).unwrap();
    all.into_iter().filter(|object| !object.is_null()).collect()
}

/// The one object of a kind and name.
pub(crate) fn object(text: &str, kind: &str, name: &str) -> Value {
    let is_it = |object: &Value| object["kind"] == kind && object["metadata"]["name"] == name;
    let mut found: Vec<_> = objects(text).into_iter().filter(is_it).collect();
    assert_eq!(found.len(), 1, "{kind} {name}");
    found.remove(0)
}

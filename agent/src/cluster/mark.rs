//! How a network configuration that the agent has written is told from those of others.

use std::path::Path;

use serde_json::Value;
use shunt_regular_file::read_own;

/// The network's name.
pub(crate) const NETWORK: &str = "shunt";

/// Says that the agent has written a configuration. Runtimes pass over keys that they do not know (CNI spec, section 1).
pub(super) const MARK: &str = "shunt.dev/managed";

/// As many bytes are read of a configuration.
pub(super) const LONGEST: u64 = 1 << 20;

/// The configuration that is there, if an agent has written it.
pub(super) fn managed(path: &Path) -> Option<Value> {
    let text = read_own(path, LONGEST).ok()?;
    serde_json::from_slice(&text).ok().filter(is_marked)
}

/// Whether an agent has written the configuration that is there.
pub(crate) fn is_managed(path: &Path) -> bool {
    managed(path).is_some()
}

pub(super) fn is_marked(known: &Value) -> bool {
    known[MARK] == true
}

//! The configuration in force, and where each value comes from.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// `shunt-agent config show`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigReport {
    /// The file that was read at the start; none if there was none.
    pub file: Option<String>,
    /// What is in force, by key.
    pub keys: Vec<ConfigKey>,
}

/// A value that is in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigKey {
    /// The key's name from the root of the file, as `uplinks.eth1.egress`.
    pub key: String,
    /// As the file has it; null for a key that is not given and has no value of its own.
    pub value: Value,
    /// Where it comes from.
    #[serde(flatten)]
    pub origin: ConfigOrigin,
}

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "from", rename_all = "kebab-case")]
pub enum ConfigOrigin {
    /// It is the agent's own.
    Default,
    /// The file has it.
    File {
        /// In this line, from 1 on.
        line: usize,
    },
    /// A flag of the command line, which wins over the file.
    Flag {
        /// The flag.
        name: String,
    },
    /// A variable of the environment.
    Environment {
        /// The variable.
        name: String,
    },
}

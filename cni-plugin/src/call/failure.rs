//! An error as the specification wants it on standard output.

use serde::{Deserialize, Serialize};

/// CNI specification 1.1, "Error". Other plugins' errors are read into it too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The version of the configuration, or the newest where it could not be read.
    #[serde(rename = "cniVersion", default)]
    pub version: String,
    /// The code; see [`Error::code`](crate::error::Error::code).
    pub code: u32,
    /// One line for a person.
    pub msg: String,
    /// More of it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub details: String,
}

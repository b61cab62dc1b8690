//! Why a configuration is not right.

use crate::call::{NameError, UnknownVersion};
use crate::result::ResultError;

/// The configuration is not right.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// Not JSON, or not an object.
    #[error("the network configuration cannot be read: {0}")]
    Json(String),
    /// No `name`.
    #[error("missing network name")]
    NoName,
    /// See [`NameError`].
    #[error(transparent)]
    Name(#[from] NameError),
    /// See [`UnknownVersion`].
    #[error(transparent)]
    Version(#[from] UnknownVersion),
    /// A value of another type than its key's.
    #[error("`{key}`: {why}")]
    Type {
        /// Where it is.
        key: String,
        /// What is wrong.
        why: String,
    },
    /// A value that cannot be meant.
    #[error("`{key}`: {why}")]
    Invalid {
        /// The key.
        key: &'static str,
        /// What is wrong.
        why: String,
    },
    /// Conditions that the programs hold no host port to. The kept plugin's rules do.
    #[error("`{key}`: {why}")]
    Condition {
        /// The key.
        key: &'static str,
        /// What is wrong.
        why: String,
    },
    /// `type` names no plugin of this binary.
    #[error("`type`: `{0}` is no plugin that shunt can stand in for")]
    NoPersonality(String),
    /// A key, or a whole type, without a dataplane behind it.
    #[error("`{key}` is not built in this version of shunt")]
    NotBuilt {
        /// The key.
        key: &'static str,
    },
    /// A chained plugin without a result before it.
    #[error("`prevResult` is missing: {0}")]
    NoPrevResult(&'static str),
    /// See [`ResultError`].
    #[error("`prevResult`: {0}")]
    PrevResult(#[from] ResultError),
}

impl ConfigError {
    /// A value that does not decode.
    pub(super) fn of_type(error: &serde_path_to_error::Error<serde_json::Error>) -> Self {
        Self::Type { key: error.path().to_string(), why: error.inner().to_string() }
    }
}

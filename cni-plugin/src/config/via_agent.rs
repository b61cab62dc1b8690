//! `viaAgent`: whether the agent's CNI service does the calls, and where it listens.

use std::path::PathBuf;

use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// Where the service listens unless the key gives another path.
pub const DEFAULT_SERVICE: &str = "/run/shunt/cni.sock";

/// Reads `true`, `false` or an absolute path; the service's socket where it is to be asked.
pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<PathBuf>, D::Error> {
    match Value::deserialize(from)? {
        Value::Null | Value::Bool(false) => Ok(None),
        Value::Bool(true) => Ok(Some(DEFAULT_SERVICE.into())),
        Value::String(path) if path.starts_with('/') => Ok(Some(path.into())),
        other => Err(D::Error::custom(format!(
            "{other} is neither true, nor false, nor the absolute path of the agent's CNI socket"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn it_is_a_flag_or_an_absolute_path() {
        for (value, socket) in [
            (json!(true), Some(DEFAULT_SERVICE)),
            (json!("/run/other.sock"), Some("/run/other.sock")),
            (json!(false), None),
            (json!(null), None),
        ] {
            assert_eq!(deserialize(value).unwrap(), socket.map(PathBuf::from));
        }
        for value in [json!(1), json!(""), json!("cni.sock"), json!("true"), json!({}), json!([])] {
            let refused = deserialize(&value).unwrap_err().to_string();
            assert!(refused.contains("absolute path"), "{value}: {refused}");
        }
    }
}

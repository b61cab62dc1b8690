//! Members of a configuration, decoded with the path to what is wrong.

use serde::Deserialize;
use serde_json::Value;

use super::error::ConfigError;

/// A member that is text; absent is empty.
pub(super) fn text<'a>(value: &'a Value, key: &str) -> Result<&'a str, ConfigError> {
    match value.get(key) {
        None => Ok(""),
        Some(Value::String(text)) => Ok(text),
        Some(_) => Err(ConfigError::Json(format!("`{key}` is not text"))),
    }
}

/// Decodes the keys of a type out of a configuration.
pub(super) fn decode<'de, T: Deserialize<'de>>(value: &'de Value) -> Result<T, ConfigError> {
    // Nearly always; where it is wrong is found out below.
    T::deserialize(value)
        .or_else(|_| serde_path_to_error::deserialize(value))
        .map_err(|error| ConfigError::of_type(&error))
}

//! `bigTcp`: how large the packets of both ends of the veth are.

use serde_json::Value;
use shunt_agent_api::BigTcp;

use super::bridge::Bridge;
use super::error::ConfigError;

/// The size, where the network says it: `auto`, `off`, or bytes.
///
/// # Errors
/// [`ConfigError::Invalid`] for anything else.
pub(crate) fn big_tcp(bridge: &Bridge) -> Result<Option<BigTcp>, ConfigError> {
    let said = |value: &&Value| !value.is_null() && value.as_str() != Some("");
    let Some(value) = bridge.big_tcp.as_ref().filter(said) else { return Ok(None) };
    let read = serde_json::from_value(value.clone());
    read.map(Some).map_err(|error| ConfigError::Invalid { key: "bigTcp", why: error.to_string() })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn with(value: Value) -> Result<Option<BigTcp>, ConfigError> {
        big_tcp(&Bridge { big_tcp: Some(value), ..Bridge::default() })
    }

    #[test]
    fn a_network_says_a_size_or_leaves_it_to_the_agent() {
        assert_eq!(big_tcp(&Bridge::default()).unwrap(), None);
        for (value, meant) in [
            (Value::Null, None),
            (json!(""), None),
            (json!("auto"), Some(BigTcp::Auto)),
            (json!("off"), Some(BigTcp::Off)),
            (json!(131_072), Some(BigTcp::Bytes(131_072))),
        ] {
            assert_eq!(with(value).unwrap(), meant);
        }
        for wrong in [json!("large"), json!(1500), json!(524_281), json!([])] {
            let error = with(wrong.clone()).unwrap_err().to_string();
            assert!(error.contains("bigTcp"), "{wrong}: {error}");
        }
    }
}

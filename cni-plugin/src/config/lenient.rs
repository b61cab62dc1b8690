//! What can still be read of a configuration with values of the wrong type.
//!
//! An ADD refuses such a configuration, and then the runtime comes with a DEL and the same one. That DEL needs a name, a
//! socket and an IPAM; it must not fail for the rest.

use serde_json::Value;
use serde_path_to_error::Segment;

use super::error::ConfigError;
use super::network::Network;

/// Decodes, and takes every member out that cannot be decoded.
///
/// # Errors
/// [`ConfigError::Type`], if that does not help.
pub(super) fn decode(value: &mut Value) -> Result<Network, ConfigError> {
    loop {
        let error = match serde_path_to_error::deserialize::<_, Network>(&*value) {
            Ok(network) => return Ok(network),
            Err(error) => error,
        };
        let member = match error.path().iter().next() {
            Some(Segment::Map { key }) => value.as_object_mut().and_then(|object| object.remove(key)),
            _ => None,
        };
        if member.is_none() {
            return Err(ConfigError::of_type(&error));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_cannot_be_decoded_is_left_out_and_the_rest_is_kept() {
        let mut value = json!({ "name": "n", "agentSocket": "/a", "ipam": { "type": "x" }, "dns": 5,
            "runtimeConfig": { "portMappings": [{ "hostPort": 70000 }] }, "prevResult": "", "mtu": "1500" });
        let network = decode(&mut value).unwrap();
        assert_eq!(network.agent_socket.unwrap().to_str(), Some("/a"));
        assert_eq!(network.ipam.unwrap().r#type, "x");
        assert_eq!(value["mtu"], "1500", "which is none of its business");
        assert!(decode(&mut json!(5)).is_err());
    }
}

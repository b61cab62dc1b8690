//! Who reaches the container, and how much it may flood: `ingressPolicy`, `filters` and `stormControl`.

use serde_json::Value;
use shunt_agent_api::{FilterMode, IngressPolicy, StormControl};

use super::bridge::Bridge;
use super::error::ConfigError;

/// The policy; its words have been judged before.
pub(crate) fn ingress_policy(bridge: &Bridge) -> IngressPolicy {
    match bridge.ingress_policy.as_deref() {
        Some("same-bridge") => IngressPolicy::SameBridge,
        Some("isolated") => IngressPolicy::Isolated,
        _ => IngressPolicy::Open,
    }
}

/// Whether others' rules are asked, where the network says so; its words have been judged before.
pub(crate) fn filters(bridge: &Bridge) -> Option<FilterMode> {
    match bridge.filters.as_deref() {
        Some("auto") => Some(FilterMode::Auto),
        Some("heed") => Some(FilterMode::Heed),
        Some("bypass") => Some(FilterMode::Bypass),
        _ => None,
    }
}

/// `{"broadcast": 100, "multicast": 1000}`, in packets a second; none where neither is limited.
///
/// # Errors
/// [`ConfigError::Invalid`] for anything else.
pub(crate) fn storm_control(bridge: &Bridge) -> Result<Option<StormControl>, ConfigError> {
    let Some(value) = bridge.storm_control.as_ref().filter(|value| !value.is_null()) else { return Ok(None) };
    let refuse = |why: String| ConfigError::Invalid { key: "stormControl", why };
    let object = value.as_object().ok_or_else(|| refuse("is no object".to_owned()))?;
    let mut storm = StormControl::default();
    for (key, value) in object.iter().filter(|(_, value)| !value.is_null()) {
        let limit = match key.to_ascii_lowercase().as_str() {
            "broadcast" => &mut storm.broadcast,
            "multicast" => &mut storm.multicast,
            _ => return Err(refuse(format!("`{key}` is neither broadcast nor multicast"))),
        };
        *limit = Some(
            rate(value)
                .ok_or_else(|| refuse(format!("{key} {value} is not 1 to 4294967295 packets a second")))?,
        );
    }
    Ok((storm != StormControl::default()).then_some(storm))
}

fn rate(value: &Value) -> Option<u32> {
    value.as_u64().and_then(|rate| u32::try_from(rate).ok()).filter(|rate| *rate > 0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn with(storm: Value) -> Result<Option<StormControl>, ConfigError> {
        storm_control(&Bridge { storm_control: Some(storm), ..Bridge::default() })
    }

    #[test]
    fn each_kind_is_limited_by_itself_or_not_at_all() {
        assert_eq!(with(Value::Null).unwrap(), None);
        assert_eq!(with(json!({ "multicast": null })).unwrap(), None);
        let broadcast = Some(StormControl { broadcast: Some(7), multicast: None });
        assert_eq!(with(json!({ "Broadcast": 7 })).unwrap(), broadcast);
    }

    #[test]
    fn what_is_no_rate_is_refused() {
        for storm in [
            json!(7),
            json!({ "broadcast": 0 }),
            json!({ "broadcast": -1 }),
            json!({ "unicast": 5 }),
            json!({ "multicast": 4_294_967_296u64 }),
        ] {
            assert!(with(storm.clone()).is_err(), "{storm}");
        }
    }
}

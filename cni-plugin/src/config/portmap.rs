//! The keys of the reference `portmap`, which it has besides the capability.
//!
//! No packet of a host port meets iptables, conntrack or a mark here: `markMasqBit`, `externalSetMarkChain` and `backend` say how
//! the reference makes its rules, and change nothing. Nor does `snat`: where the reference masquerades by it, from the loopback and
//! from the container's own subnet, there would be no answer otherwise. `masqAll` does what it does there.
//! All are read, so that what the reference would refuse is refused.

use serde::Deserialize;

use super::error::ConfigError;

/// The bits of a packet's mark.
const MARK_BITS: i64 = 32;

/// `portmap`'s own keys.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Portmap {
    snat: Option<bool>,
    masq_all: bool,
    mark_masq_bit: Option<i64>,
    external_set_mark_chain: Option<String>,
    #[serde(rename = "conditionsV4")]
    conditions_v4: Vec<String>,
    #[serde(rename = "conditionsV6")]
    conditions_v6: Vec<String>,
    backend: Option<String>,
}

/// Checks them.
///
/// # Errors
/// [`ConfigError::Invalid`] for what the reference refuses, and for conditions: they are iptables' own words for a rule that there
/// is none of here, and without them a mapping would lead further than was meant.
pub(super) fn check(portmap: &Portmap) -> Result<(), ConfigError> {
    let invalid = |key, why: String| Err(ConfigError::Invalid { key, why });
    if portmap.mark_masq_bit.is_some() && portmap.external_set_mark_chain.is_some() {
        return invalid("externalSetMarkChain", "cannot be set together with markMasqBit".to_owned());
    }
    if let Some(bit) = portmap.mark_masq_bit.filter(|bit| !(0..MARK_BITS).contains(bit)) {
        return invalid("markMasqBit", format!("{bit} is not between 0 and 31"));
    }
    if let Some(backend) = portmap.backend.as_deref()
        && !["iptables", "nftables", ""].contains(&backend)
    {
        return invalid("backend", format!("`{backend}` is none of iptables, nftables"));
    }
    for (key, conditions) in
        [("conditionsV4", &portmap.conditions_v4), ("conditionsV6", &portmap.conditions_v6)]
    {
        if !conditions.is_empty() {
            let why = "are matches of iptables, of which no host port makes use here: `hostIP` says for which address a port is, \
                       a NetworkPolicy who may come";
            return invalid(key, why.to_owned());
        }
    }
    Ok(())
}

/// Whether the container is to see the node instead of its clients. Without `snat` the reference's `masqAll` does nothing.
pub(super) fn masquerades(portmap: &Portmap) -> bool {
    portmap.masq_all && portmap.snat != Some(false)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn judged(keys: Value) -> Result<(), ConfigError> {
        check(&serde_json::from_value(keys).unwrap())
    }

    #[test]
    fn keys_of_rules_are_read_and_change_nothing() {
        for keys in [
            json!({}),
            json!({ "snat": true, "masqAll": false, "backend": "iptables" }),
            json!({ "snat": false, "masqAll": true, "markMasqBit": 13 }),
            json!({ "externalSetMarkChain": "KUBE-MARK-MASQ", "conditionsV4": [], "backend": "" }),
        ] {
            judged(keys.clone()).unwrap_or_else(|error| panic!("{keys}: {error}"));
        }
    }

    #[test]
    fn all_clients_are_hidden_where_the_reference_hides_them() {
        for (keys, hides) in [
            (json!({}), false),
            (json!({ "snat": true }), false),
            (json!({ "masqAll": true }), true),
            (json!({ "masqAll": true, "snat": true }), true),
            (json!({ "masqAll": true, "snat": false }), false),
        ] {
            let portmap: Portmap = serde_json::from_value(keys.clone()).unwrap();
            assert_eq!(masquerades(&portmap), hides, "{keys}");
        }
    }

    #[test]
    fn what_the_reference_refuses_is_refused_and_so_is_what_cannot_hold_here() {
        for (keys, key) in [
            (json!({ "externalSetMarkChain": "X", "markMasqBit": 13 }), "externalSetMarkChain"),
            (json!({ "markMasqBit": 32 }), "markMasqBit"),
            (json!({ "markMasqBit": -1 }), "markMasqBit"),
            (json!({ "backend": "ebtables" }), "backend"),
            (json!({ "conditionsV4": ["-s", "192.0.2.0/24"] }), "conditionsV4"),
            (json!({ "conditionsV6": ["-s", "2001:db8::/32"] }), "conditionsV6"),
        ] {
            let refused = judged(keys.clone());
            let named = matches!(&refused, Err(ConfigError::Invalid { key: named, .. }) if *named == key);
            assert!(named, "{keys}: {refused:?}");
        }
    }
}

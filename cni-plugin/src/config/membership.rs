//! Which VLANs a port is in, by either of two ways to say it: `vlans`, or the reference plugin's `vlan`, `vlanTrunk` and
//! `preserveDefaultVlan`, which `vlans` disables.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use serde_json::Value;
use shunt_agent_api::Vlans;

use super::bridge::{Bridge, VlanRange};
use super::error::ConfigError;

/// The VLANs that there are; 0 is none, and 4095 is reserved (IEEE 802.1Q).
const VIDS: RangeInclusive<u64> = 1..=4094;

/// In which VLAN a bridge's ports are by default.
const DEFAULT: u16 = 1;

/// The VLANs of a port; none if it knows none.
///
/// # Errors
/// [`ConfigError::Invalid`] with the key's name.
pub(crate) fn membership(bridge: &Bridge) -> Result<Option<Vlans>, ConfigError> {
    if let Some(vlans) = bridge.vlans.as_ref().filter(|vlans| !vlans.is_null()) {
        return both_kinds(vlans).map(Some);
    }
    if u64::from(bridge.vlan) > *VIDS.end() {
        return Err(invalid("vlan", format!("{} is not between 0 and 4094", bridge.vlan)));
    }
    let tagged = trunk_of(&bridge.vlan_trunk)?;
    if bridge.vlan == 0 && tagged.is_empty() {
        return Ok(None);
    }
    if tagged.contains(&bridge.vlan) {
        return Err(invalid("vlanTrunk", format!("{} is the untagged VLAN already", bridge.vlan)));
    }
    // A trunk's untagged frames are in the default VLAN, unless that is tagged or another one is named.
    let native = (!tagged.contains(&DEFAULT)).then_some(DEFAULT);
    let untagged = if bridge.vlan == 0 { native } else { Some(bridge.vlan) };
    let default = bridge.preserve_default_vlan && untagged != Some(DEFAULT) && !tagged.contains(&DEFAULT);
    Ok(Some(Vlans { untagged, tagged: tagged.into_iter().collect(), default }))
}

/// `{"untagged": 1234, "tagged": [5, 6, 7]}`
fn both_kinds(vlans: &Value) -> Result<Vlans, ConfigError> {
    let refuse = |why: String| invalid("vlans", why);
    let object = vlans.as_object().ok_or_else(|| refuse("is no object".to_owned()))?;
    let mut membership = Vlans::default();
    for (key, value) in object.iter().filter(|(_, value)| !value.is_null()) {
        match key.to_ascii_lowercase().as_str() {
            "untagged" => membership.untagged = Some(vid(value).map_err(refuse)?),
            "tagged" => {
                let list = value.as_array().ok_or_else(|| refuse("tagged is no list".to_owned()))?;
                membership.tagged = list.iter().map(vid).collect::<Result<_, _>>().map_err(refuse)?;
            }
            _ => return Err(refuse(format!("`{key}` is neither untagged nor tagged"))),
        }
    }
    let tagged: BTreeSet<u16> = membership.tagged.iter().copied().collect();
    if tagged.len() != membership.tagged.len() {
        return Err(refuse("tagged names a VLAN twice".to_owned()));
    }
    if let Some(untagged) = membership.untagged.filter(|untagged| tagged.contains(untagged)) {
        return Err(refuse(format!("{untagged} is both untagged and tagged")));
    }
    if membership == Vlans::default() {
        return Err(refuse("names no VLAN".to_owned()));
    }
    membership.tagged = tagged.into_iter().collect();
    Ok(membership)
}

fn vid(value: &Value) -> Result<u16, String> {
    let number = value.as_u64().filter(|vid| VIDS.contains(vid));
    number.and_then(|vid| vid.try_into().ok()).ok_or_else(|| format!("{value} is not between 1 and 4094"))
}

/// The VLANs of all ranges, however many there are and however often one is named.
fn trunk_of(ranges: &[VlanRange]) -> Result<BTreeSet<u16>, ConfigError> {
    if ranges.is_empty() {
        return Ok(BTreeSet::new());
    }
    // At each VLAN, how many more ranges begin than have ended.
    let mut changes = vec![0_i32; *VIDS.end() as usize + 2];
    for range in ranges {
        let vids = trunk(range)?;
        changes[usize::from(*vids.start())] += 1;
        changes[usize::from(*vids.end()) + 1] -= 1;
    }
    let mut open = 0;
    let tagged = (0..).zip(changes).filter(|(_, change)| {
        open += change;
        open > 0
    });
    Ok(tagged.map(|(vid, _)| vid).collect())
}

fn trunk(range: &VlanRange) -> Result<RangeInclusive<u16>, ConfigError> {
    let refuse = |why: String| Err(invalid("vlanTrunk", why));
    let inside = |id: u16| VIDS.contains(&u64::from(id));
    match (range.id, range.min, range.max) {
        (Some(id), None, None) if inside(id) => Ok(id..=id),
        (Some(id), None, None) => refuse(format!("{id} is not between 1 and 4094")),
        (None, Some(min), Some(max)) if inside(min) && inside(max) && min <= max => Ok(min..=max),
        (None, Some(min), Some(max)) => refuse(format!("{min} to {max} is not a range within 1 to 4094")),
        (None, Some(_), None) | (None, None, Some(_)) => {
            refuse("minID and maxID must come together".to_owned())
        }
        (Some(_), _, _) => refuse("id cannot be set together with minID or maxID".to_owned()),
        (None, None, None) => refuse("has neither id nor minID and maxID".to_owned()),
    }
}

fn invalid(key: &'static str, why: String) -> ConfigError {
    ConfigError::Invalid { key, why }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(config: Value) -> Result<Option<Vlans>, String> {
        let bridge: Bridge = serde_json::from_value(config).unwrap();
        membership(&bridge).map_err(|error| error.to_string())
    }

    fn vlans(
        untagged: impl Into<Option<u16>>,
        tagged: &[u16],
        default: bool,
    ) -> Result<Option<Vlans>, String> {
        Ok(Some(Vlans { untagged: untagged.into(), tagged: tagged.to_vec(), default }))
    }

    #[test]
    fn every_kind_of_port_can_be_said() {
        assert_eq!(of(json!({})), Ok(None));
        assert_eq!(of(json!({ "preserveDefaultVlan": true })), Ok(None));
        assert_eq!(of(json!({ "vlan": 7 })), vlans(7, &[], false));
        assert_eq!(of(json!({ "vlan": 7, "preserveDefaultVlan": true })), vlans(7, &[], true));
        assert_eq!(of(json!({ "vlan": 1, "preserveDefaultVlan": true })), vlans(1, &[], false));
        assert_eq!(of(json!({ "vlanTrunk": [{ "minID": 5, "maxID": 7 }] })), vlans(1, &[5, 6, 7], false));
        assert_eq!(of(json!({ "vlanTrunk": [{ "minID": 1, "maxID": 2 }] })), vlans(None, &[1, 2], false));
        assert_eq!(of(json!({ "vlan": 9, "vlanTrunk": [{ "id": 5 }, { "id": 5 }] })), vlans(9, &[5], false));
        assert_eq!(
            of(json!({ "vlans": { "untagged": 1234, "tagged": [7, 5] } })),
            vlans(1234, &[5, 7], false)
        );
        assert_eq!(of(json!({ "vlans": { "tagged": [5] } })), vlans(None, &[5], false));
        assert_eq!(of(json!({ "vlans": null, "vlan": 3 })), vlans(3, &[], false));
    }

    #[test]
    fn a_trunk_of_a_hundred_thousand_ranges_is_read_at_once() {
        let ranges = vec![VlanRange { id: None, min: Some(2), max: Some(4094) }; 100_000];
        let begun = std::time::Instant::now();
        let vlans = membership(&Bridge { vlan_trunk: ranges, ..Bridge::default() }).unwrap().unwrap();
        assert!(begun.elapsed() < std::time::Duration::from_secs(1), "{:?}", begun.elapsed());
        assert_eq!((vlans.untagged, vlans.tagged.len()), (Some(1), 4093));
    }

    #[test]
    fn vlans_disables_the_other_three() {
        let others = json!({
            "vlan": 9, "vlanTrunk": [{ "id": 8 }], "preserveDefaultVlan": true, "vlans": { "untagged": 5 },
        });
        assert_eq!(of(others), vlans(5, &[], false));
    }

    #[test]
    fn what_is_no_membership_is_refused_by_its_key() {
        for (key, config) in [
            ("vlan", json!({ "vlan": 4095 })),
            ("vlanTrunk", json!({ "vlanTrunk": [{ "minID": 7, "maxID": 5 }] })),
            ("vlanTrunk", json!({ "vlanTrunk": [{ "minID": 0, "maxID": 5 }] })),
            ("vlanTrunk", json!({ "vlanTrunk": [{ "minID": 5 }] })),
            ("vlanTrunk", json!({ "vlanTrunk": [{ "id": 4095 }] })),
            ("vlanTrunk", json!({ "vlanTrunk": [{}] })),
            ("vlanTrunk", json!({ "vlan": 5, "vlanTrunk": [{ "minID": 2, "maxID": 9 }] })),
            ("vlans", json!({ "vlans": {} })),
            ("vlans", json!({ "vlans": [] })),
            ("vlans", json!({ "vlans": { "untagged": 0 } })),
            ("vlans", json!({ "vlans": { "untagged": 4095 } })),
            ("vlans", json!({ "vlans": { "untagged": 70000 } })),
            ("vlans", json!({ "vlans": { "untagged": "5" } })),
            ("vlans", json!({ "vlans": { "tagged": 5 } })),
            ("vlans", json!({ "vlans": { "tagged": [5, 4095] } })),
            ("vlans", json!({ "vlans": { "tagged": [5, 5] } })),
            ("vlans", json!({ "vlans": { "untagged": 5, "tagged": [4, 5] } })),
            ("vlans", json!({ "vlans": { "untagged": 5, "natve": 4 } })),
        ] {
            let error = of(config.clone()).unwrap_err();
            assert!(error.contains(&format!("`{key}`")), "{config}: {error}");
        }
    }
}

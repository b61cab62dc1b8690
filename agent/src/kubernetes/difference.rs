//! What an API server has made of what it was given.
//!
//! It keeps quantities in another form than they came in (`2G` becomes `1953125Ki`), fills fields in that were left out, and
//! drops those that a feature gate turns off, without a word.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::capacity::Quantity;

/// The paths at which `theirs` is not what `ours` says; a trailing `?` marks one that it does not have at all. What only
/// `theirs` has is no difference, but for members of a list.
pub(super) fn differences(ours: &Value, theirs: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    compare("", ours, theirs, &mut found);
    found
}

fn compare(path: &str, ours: &Value, theirs: &Value, found: &mut BTreeSet<String>) {
    match (ours, theirs) {
        (Value::Object(ours), Value::Object(theirs)) => {
            for (key, own) in ours {
                let path = format!("{path}.{key}");
                match theirs.get(key) {
                    Some(their) => compare(&path, own, their, found),
                    None => _ = found.insert(format!("{}?", path.trim_start_matches('.'))),
                }
            }
        }
        (Value::Array(ours), Value::Array(theirs)) if ours.len() == theirs.len() => {
            for (at, (own, their)) in ours.iter().zip(theirs).enumerate() {
                compare(&format!("{path}[{at}]"), own, their, found);
            }
        }
        (Value::String(own), Value::String(their)) if is_same_quantity(own, their) => {}
        _ if ours == theirs => {}
        _ => _ = found.insert(path.trim_start_matches('.').to_owned()),
    }
}

fn is_same_quantity(one: &str, other: &str) -> bool {
    matches!((one.parse::<Quantity>(), other.parse::<Quantity>()), (Ok(one), Ok(other)) if one == other)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn quantities_are_compared_by_what_they_mean() {
        let (ours, theirs) = (json!({ "value": "2G", "max": "1500k" }), json!({ "value": "1953125Ki" }));
        assert_eq!(differences(&ours, &theirs), BTreeSet::from(["max?".to_owned()]));
        let theirs = json!({ "value": "2000001k", "max": "1.5M" });
        assert_eq!(differences(&ours, &theirs), BTreeSet::from(["value".to_owned()]));
    }

    #[test]
    fn what_is_dropped_is_named_by_its_path_and_what_is_added_is_no_difference() {
        let ours = json!({ "devices": [{ "name": "a", "shared": true }, { "name": "b", "shared": true }] });
        let theirs = json!({ "devices": [{ "name": "a", "extra": 1 }, { "name": "c", "shared": true }] });
        let found: Vec<_> = differences(&ours, &theirs).into_iter().collect();
        assert_eq!(found, ["devices[0].shared?", "devices[1].name"]);
        assert_eq!(differences(&ours, &json!({ "devices": [] })), BTreeSet::from(["devices".to_owned()]));
    }
}

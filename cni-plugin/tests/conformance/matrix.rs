//! Every verb in every version of the specification, on an attachment that is as it should be, word for word.

use std::path::Path;

use serde_json::{Map, Value, json};

use crate::golden::{compare, normalise};
use crate::runtime::Runtime;

pub(crate) const VERSIONS: [&str; 7] = ["0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"];

/// The specification's verbs and those beyond it, in an order in which each finds what it needs. A second ADD is in the
/// way of the first one's interface.
pub(crate) const VERBS: [&str; 14] = [
    "VERSION", "VALIDATE", "STATUS", "CAPACITY", "INIT", "ADD", "ADD", "CHECK", "FINALIZE", "GC", "DEINIT",
    "DEL", "DEL", "DEINIT",
];

/// What is printed, `null` for nothing.
fn answers(version: &str) -> Value {
    let runtime = Runtime::new();
    let _container = runtime.container("c1");
    let mut network = runtime.network("n1");
    network["cniVersion"] = json!(version);
    network["cni.dev/valid-attachments"] = json!([{ "containerID": "c1", "ifname": "eth0" }]);
    let (mut said, mut result) = (Vec::new(), Value::Null);
    for verb in VERBS {
        // No plugin is before this one.
        network["prevResult"] = if verb == "ADD" { Value::Null } else { result.clone() };
        let outcome = runtime.call_args(verb, "c1", "MAC=02:00:00:00:00:01", &network);
        let failed = outcome.printed.get("code").is_some();
        assert_eq!(outcome.success, !failed, "{version} {verb}: {}", outcome.printed);
        if verb == "ADD" && outcome.success {
            result = outcome.printed.clone();
        }
        said.push(json!({ verb: normalise(outcome.printed, &runtime) }));
    }
    Value::Array(said)
}

#[test]
fn every_verb_answers_in_every_version_as_it_always_has() {
    for version in VERSIONS {
        compare(&format!("verbs-{version}.json"), &answers(version));
    }
}

#[test]
fn what_is_said_agrees_with_the_versions_rules() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance/golden");
    for version in VERSIONS {
        let text = std::fs::read_to_string(folder.join(format!("verbs-{version}.json"))).unwrap();
        let said: Vec<Map<String, Value>> = serde_json::from_str(&text).unwrap();
        let codes: Vec<_> =
            said.iter().map(|one| one.values().next().unwrap()["code"].as_u64().unwrap_or(0)).collect();
        let since = |first: &str| if version < first { 1 } else { 0 };
        let (status, check) = (since("1.1.0"), since("0.4.0"));
        // The second ADD finds the first one's interface, the first DEINIT finds its port.
        assert_eq!(codes, [0, 0, status, 0, 0, 0, 106, check, check, status, 11, 0, 0, 0], "{version}");
        let result = &said[5]["ADD"];
        assert_eq!(result["cniVersion"], version);
        assert_eq!(result.get("ip4").is_some(), version < "0.3.0", "{version}");
        assert_eq!(result.get("interfaces").is_some(), version >= "0.3.0", "{version}");
        assert_eq!(result["interfaces"][2].get("mtu").is_some(), version >= "1.1.0", "{version}");
        assert_eq!(
            result["ips"][0].get("version").is_some(),
            ("0.3.0".."1.0.0").contains(&version),
            "{version}"
        );
    }
}

//! The same attachment in every version of the specification, word for word.
//!
//! `UPDATE_GOLDEN=1` writes the files anew.

use serde_json::{Value, json};

use crate::runtime::Runtime;

pub(crate) fn compare(name: &str, found: &Value) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance/golden").join(name);
    let text = format!("{found:#}\n");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    assert_eq!(text, std::fs::read_to_string(&path).unwrap(), "{}", path.display());
}

/// Replaces what differs from run to run.
pub(crate) fn normalise(mut result: Value, runtime: &Runtime) -> Value {
    let interfaces = result.get_mut("interfaces").and_then(Value::as_array_mut);
    for interface in interfaces.into_iter().flatten() {
        if interface["name"].as_str().is_some_and(|name| name.starts_with("veth")) {
            interface["name"] = json!("vethXXXXXXXX");
        }
        if interface.get("mac").is_some_and(|mac| mac != "02:00:00:00:00:01") {
            interface["mac"] = json!("XX");
        }
    }
    let root = runtime.lab.root().display().to_string();
    serde_json::from_str(&result.to_string().replace(&root, "/run/lab")).unwrap()
}

#[test]
fn results_are_said_in_the_version_asked_for() {
    for version in ["0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"] {
        let runtime = Runtime::new();
        let _container = runtime.container("c1");
        let mut network = runtime.network("n1");
        network["cniVersion"] = json!(version);
        network["dns"] = json!({ "nameservers": ["192.0.2.53"], "search": ["example.org"] });
        network["ipam"]["routes"] = json!([{ "dst": "192.0.2.0/24", "mtu": 1300 }]);
        let result = runtime.call_args("ADD", "c1", "MAC=02:00:00:00:00:01", &network).ok();
        let printed = normalise(result.clone(), &runtime);
        compare(&format!("add-{version}.json"), &printed);
        network["prevResult"] = result;
        if version >= "0.4.0" {
            assert_eq!(runtime.call("CHECK", "c1", &network).ok(), Value::Null, "{version}");
        }
        assert_eq!(runtime.call("DEL", "c1", &network).ok(), Value::Null, "{version}");
    }
}

#[test]
fn errors_are_said_in_the_version_asked_for() {
    for version in ["0.1.0", "0.4.0", "1.1.0"] {
        let runtime = Runtime::new();
        for verb in ["ADD", "CHECK", "GC", "STATUS", "VALIDATE", "INIT", "FINALIZE"] {
            let config = json!({ "cniVersion": version, "name": "n1", "type": "bridge", "portIsolation": true,
                "cni.dev/valid-attachments": 5 });
            let printed = runtime.call(verb, "c1", &config).printed;
            compare(&format!("error-{}-{version}.json", verb.to_lowercase()), &normalise(printed, &runtime));
        }
    }
}

#[test]
fn a_version_without_a_result_for_no_address_says_so() {
    let runtime = Runtime::new();
    let _container = runtime.container("c1");
    let before = runtime.inventory();
    let network = json!({ "cniVersion": "0.2.0", "name": "n1", "type": "shunt", "bridge": "br0" });
    let (code, text) = runtime.call("ADD", "c1", &network).error();
    assert!(code == 6 && text.contains("needs at least one address"), "{text}");
    runtime.assert_nothing_new(&before);
}

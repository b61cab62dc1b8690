//! The protocol around the verbs, as the Go skeleton of every other plugin answers it.

use serde_json::{Value, json};

use crate::runtime::Runtime;

fn without<'a>(environment: &[(&'a str, String)], names: &[&str]) -> Vec<(&'a str, String)> {
    environment.iter().filter(|(name, _)| !names.contains(name)).cloned().collect()
}

#[test]
fn a_person_who_runs_the_plugin_is_told_what_it_is() {
    let runtime = Runtime::new();
    let outcome = runtime.call_with(&[], b"");
    assert!(outcome.success && outcome.printed == Value::Null);
    assert!(outcome.complaint.starts_with("CNI plugin shunt v"), "{}", outcome.complaint);
    assert!(
        outcome
            .complaint
            .contains("CNI protocol versions supported: 0.1.0, 0.2.0, 0.3.0, 0.3.1, 0.4.0, 1.0.0, 1.1.0")
    );
    assert!(
        ["VALIDATE", "INIT", "DEINIT", "FINALIZE", "CAPACITY"]
            .iter()
            .all(|verb| outcome.complaint.contains(verb))
    );
}

#[test]
fn all_missing_variables_are_named_at_once() {
    let runtime = Runtime::new();
    let all = runtime.environment("ADD", "c1");
    let missing = without(&all, &["CNI_CONTAINERID", "CNI_NETNS", "CNI_IFNAME", "CNI_PATH"]);
    let (code, text) = runtime.call_with(&missing, b"{}").error();
    assert_eq!(code, 4);
    assert!(text.contains("[CNI_CONTAINERID,CNI_NETNS,CNI_IFNAME,CNI_PATH] missing"), "{text}");
    let del = without(&runtime.environment("DEL", "c1"), &["CNI_NETNS", "CNI_IFNAME"]);
    let (code, text) = runtime.call_with(&del, b"{}").error();
    assert!(code == 4 && text.contains("[CNI_IFNAME] missing"), "{text}");
}

#[test]
fn version_is_answered_without_any_configuration() {
    let runtime = Runtime::new();
    let environment = [("CNI_COMMAND", "VERSION".to_owned()), ("CNI_NETNS", "dummy".to_owned())];
    let printed = runtime.call_with(&environment, b"").ok();
    let supported = json!(["0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"]);
    assert_eq!(printed, json!({ "cniVersion": "1.1.0", "supportedVersions": supported }));
}

#[test]
fn broken_input_gets_the_specifications_codes() {
    let runtime = Runtime::new();
    let environment = runtime.environment("ADD", "c1");
    let cases: [(&str, u64); 12] = [
        ("", 6),
        ("{", 6),
        ("[]", 6),
        ("null", 6),
        (r#"{"cniVersion":"1.0.0","name":5,"type":"shunt"}"#, 6),
        (r#"{"cniVersion":1,"name":"n","type":"shunt"}"#, 6),
        (r#"{"cniVersion":"1.0.0","type":"shunt"}"#, 7),
        (r#"{"cniVersion":"1.0.0","name":"-n","type":"shunt"}"#, 7),
        (r#"{"cniVersion":"1.0.0","name":"n/../m","type":"shunt"}"#, 7),
        (r#"{"cniVersion":"9.9.9","name":"n","type":"shunt"}"#, 1),
        (r#"{"cniVersion":"1.0.0","name":"n"}"#, 7),
        (r#"{"cniVersion":"1.0.0","name":"n","type":"calico"}"#, 7),
    ];
    for (input, expected) in cases {
        let (code, text) = runtime.call_with(&environment, input.as_bytes()).error();
        assert_eq!(code, expected, "{input}: {text}");
    }
}

#[test]
fn names_are_checked_before_anything_is_read() {
    let runtime = Runtime::new();
    for (name, value) in [
        ("CNI_CONTAINERID", "../etc"),
        ("CNI_CONTAINERID", "-c"),
        ("CNI_IFNAME", "sixteen-letters-"),
        ("CNI_IFNAME", ".."),
        ("CNI_IFNAME", "a/b"),
        ("CNI_IFNAME", "a:b"),
        ("CNI_IFNAME", "a b"),
        ("CNI_IFNAME", "eth%d"),
        ("CNI_IFNAME", "eth\u{1b}"),
        ("CNI_COMMAND", "FLY"),
        ("CNI_ARGS", "K8S_POD_NAME=x"),
        ("CNI_ARGS", "IgnoreUnknown=1;broken"),
    ] {
        let mut environment = without(&runtime.environment("ADD", "c1"), &[name]);
        environment.push((name, value.to_owned()));
        let (code, text) = runtime.call_with(&environment, b"not even JSON").error();
        assert_eq!(code, 4, "{name}={value}: {text}");
    }
}

#[test]
fn verbs_that_a_version_does_not_have_are_refused() {
    let runtime = Runtime::new();
    for (verb, version) in [("CHECK", "0.3.1"), ("GC", "1.0.0"), ("STATUS", "1.0.0"), ("GC", "0.4.0")] {
        let config = json!({ "cniVersion": version, "name": "n", "type": "shunt" });
        let (code, text) = runtime.call(verb, "c1", &config).error();
        assert_eq!(code, 1, "{verb}: {text}");
        assert!(text.contains(&format!("config version {version} does not allow {verb}")), "{text}");
    }
}

#[test]
fn an_error_carries_the_configurations_version() {
    let runtime = Runtime::new();
    let config = json!({ "CNIVERSION": "0.3.1", "name": "n", "type": "shunt", "mtu": 5 });
    assert_eq!(runtime.call("ADD", "c1", &config).printed["cniVersion"], "0.3.1");
}

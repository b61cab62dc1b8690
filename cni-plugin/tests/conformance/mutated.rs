//! Configurations, results and arguments with faults in them: always a JSON error or a success, never a panic, a hang or
//! anything left behind.
//!
//! The plugin runs in this process, on a thread in the node's namespace. Cases that once failed are kept in
//! `mutated.proptest-regressions`; the recordings in `callers/` are the corpus.

use std::ffi::OsString;
use std::path::Path;

use proptest::prelude::*;
use proptest::test_runner::{FileFailurePersistence, TestRunner};
use serde_json::{Value, json};
use shunt::Reply;

use crate::runtime::Runtime;

/// One fault: where (modulo the number of places) and what.
type Fault = (u16, u8);

/// Values that have broken decoders before.
fn nasty(choice: u8) -> Value {
    let values = [
        json!(null),
        json!(true),
        json!(0),
        json!(-1),
        json!(1.5e300),
        json!(u64::MAX),
        json!(""),
        json!("a"),
        json!("10.77.0.0/24"),
        json!("10.77.0.0/33"),
        json!("::/0"),
        json!("../.."),
        json!("\u{0}\u{7}"),
        json!("x".repeat(5000)),
        json!([]),
        json!([null]),
        json!([[[]]]),
        json!({}),
        json!({ "": "" }),
        json!([{ "subnet": "255.255.255.255/32" }]),
        json!({ "cniVersion": "0.2.0", "ip4": {} }),
        json!("shunt"),
        json!("bridge"),
        json!("shunt-ipam"),
        json!("0.1.0"),
        json!("1.1.0"),
        json!("IgnoreUnknown=1"),
        json!(4094),
    ];
    values[usize::from(choice) % values.len()].clone()
}

/// Every place in a value, as JSON pointers.
fn places(value: &Value, here: String, found: &mut Vec<String>) {
    found.push(here.clone());
    match value {
        Value::Object(object) => {
            for (key, member) in object {
                places(member, format!("{here}/{}", key.replace('~', "~0").replace('/', "~1")), found);
            }
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, item)| places(item, format!("{here}/{index}"), found));
        }
        _ => {}
    }
}

fn mutate(config: &mut Value, faults: &[Fault]) {
    for (place, what) in faults {
        let mut found = Vec::new();
        places(config, String::new(), &mut found);
        let pointer = &found[usize::from(*place) % found.len()];
        let member = config.pointer_mut(pointer).unwrap();
        match (what % 8, member) {
            (0, Value::Object(object)) => object.clear(),
            (1, Value::Object(object)) => {
                let shouted: Vec<_> =
                    object.iter().map(|(key, member)| (key.to_uppercase(), member.clone())).collect();
                object.extend(shouted);
            }
            (2, Value::Array(items)) => items.extend(items.clone()),
            (_, member) => *member = nasty(what / 8),
        }
    }
}

/// Runs the plugin here. Its IPAM's files stay in the lab, whatever became of the configuration.
fn call(runtime: &Runtime, verb: &str, arguments: &str, config: &Value) -> Reply {
    let mut config = config.clone();
    for key in ["ipam", "IPAM"] {
        if let Some(Value::Object(ipam)) = config.get_mut(key) {
            ipam.retain(|key, _| {
                !key.eq_ignore_ascii_case("dataDir") && !key.eq_ignore_ascii_case("resolvConf")
            });
            ipam.insert("dataDir".to_owned(), json!(runtime.leases()));
        }
    }
    let mut environment = runtime.environment(verb, "c1");
    environment.push(("CNI_ARGS", arguments.to_owned()));
    let get = |name: &str| {
        environment.iter().find(|(other, _)| *other == name).map(|(_, value)| OsString::from(value))
    };
    shunt::run(Path::new("shunt"), get, config.to_string().as_bytes())
}

/// Names the agent's socket, whatever the faults made of that.
fn with_agent(config: &Value, socket: &Path) -> Value {
    let mut config = config.clone();
    if let Value::Object(object) = &mut config {
        object.retain(|key, _| !key.eq_ignore_ascii_case("agentSocket"));
        object.insert("agentSocket".to_owned(), json!(socket));
    }
    config
}

fn judge(reply: &Reply) -> Result<(), TestCaseError> {
    match reply {
        Reply::Done(_) => Ok(()),
        Reply::Failed(text) => {
            let error: Value =
                serde_json::from_str(text).map_err(|error| TestCaseError::fail(error.to_string()))?;
            let complete = error["code"].as_u64().is_some_and(|code| code > 0) && error["msg"].is_string();
            prop_assert!(complete, "{}", text);
            Ok(())
        }
        Reply::About => Err(TestCaseError::fail("a runtime was told about the plugin")),
    }
}

/// The recorded configurations, and one with a result in it.
fn corpus(runtime: &Runtime) -> Vec<Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance/callers");
    let mut configs = vec![runtime.network("n1")];
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    for file in files {
        let recording: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
        configs.extend(recording["calls"].as_array().unwrap().iter().map(|call| call["config"].clone()));
    }
    configs.retain(Value::is_object);
    let result = json!({ "cniVersion": "1.1.0", "ips": [{ "address": "10.77.0.9/24", "gateway": "10.77.0.1", "interface": 0 }],
        "interfaces": [{ "name": "eth0", "mac": "02:00:00:00:00:01", "sandbox": "/x", "mtu": 1500 }],
        "routes": [{ "dst": "0.0.0.0/0", "gw": "10.77.0.1", "mtu": 1300, "table": 5, "scope": 0 }], "dns": { "domain": "x" } });
    let chained = json!({ "cniVersion": "1.1.0", "name": "n1", "type": "shunt", "bridge": "br0", "prevResult": result });
    configs.push(chained);
    configs
}

fn arguments() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => Just(String::new()),
        1 => "(IgnoreUnknown|MAC|IP|X)=[0-9a-f:.,/]{0,20}(;(IgnoreUnknown|IP)=[a-z0-9.]{0,9}){0,2}",
        1 => "[ -~]{0,40}",
    ]
}

/// Runs `cases` on a thread in the node's namespace.
fn fuzz(cases: u32, test: impl Fn(&Runtime, &Value, &str) -> Result<(), TestCaseError> + Sync) {
    let runtime = Runtime::new();
    let _container = runtime.container("c1");
    let corpus = corpus(&runtime);
    let before = runtime.inventory();
    runtime
        .node
        .enter(|| {
            let regressions = FileFailurePersistence::WithSource("proptest-regressions");
            let config = ProptestConfig {
                cases,
                failure_persistence: Some(Box::new(regressions)),
                source_file: Some(file!()),
                ..ProptestConfig::default()
            };
            let faults = prop::collection::vec(any::<Fault>(), 0..4);
            let input = (any::<prop::sample::Index>(), faults, arguments());
            TestRunner::new(config)
                .run(&input, |(choice, faults, arguments)| {
                    let mut config = choice.get(&corpus).clone();
                    mutate(&mut config, &faults);
                    test(&runtime, &config, &arguments)
                })
                .unwrap();
        })
        .unwrap();
    let left: Vec<_> =
        runtime.inventory().since(&before).into_iter().filter(|line| !line.starts_with("lease")).collect();
    let kept = |line: &&String| line.starts_with("link veth");
    assert_eq!(left.iter().find(kept), None);
    runtime.agent.with(|books| assert!(books.ports.is_empty(), "{:?}", books.ports));
}

#[test]
fn ten_thousand_mutated_configurations_are_answered_in_json() {
    fuzz(10_000, |runtime, config, arguments| {
        let offline = with_agent(config, Path::new("/nonexistent/agent.sock"));
        for verb in ["VALIDATE", "ADD", "GC", "CHECK"] {
            judge(&call(runtime, verb, arguments, &offline))?;
        }
        Ok(())
    });
}

#[test]
fn mutated_attachments_are_undone_by_their_own_del() {
    fuzz(400, |runtime, config, arguments| {
        let online = with_agent(config, runtime.agent.socket());
        judge(&call(runtime, "ADD", arguments, &online))?;
        judge(&call(runtime, "DEL", arguments, &online))
    });
}

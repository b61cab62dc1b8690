//! What real callers send, word for word in `callers/`, each with what becomes of it.

use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use crate::runtime::Runtime;

/// One caller's calls, in its order.
#[derive(Deserialize)]
struct Recording {
    calls: Vec<Call>,
}

#[derive(Deserialize)]
struct Call {
    verb: String,
    #[serde(default)]
    arguments: String,
    /// Instead of the container's namespace.
    netns: Option<String>,
    #[serde(default)]
    config: Value,
    /// Whether the ADD's result is to be put into the configuration.
    #[serde(default)]
    chained: bool,
    /// The code of the error that must come of it; 0 is success.
    code: u64,
}

fn play(path: &Path) {
    let recording: Recording = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let runtime = Runtime::new();
    let _container = runtime.container("c1");
    let mut result = Value::Null;
    for call in recording.calls {
        let mut config = call.config;
        let ipam = ["ipam", "IPAM"].into_iter().find(|key| config.get(key).is_some());
        if let Some(ipam) = ipam {
            config[ipam]["dataDir"] = runtime.leases().display().to_string().into();
        }
        if call.chained {
            config["prevResult"] = result.clone();
        }
        let mut environment = runtime.environment(&call.verb, "c1");
        if let Some(netns) = call.netns {
            environment[2].1 = netns;
        }
        environment.push(("CNI_ARGS", call.arguments));
        let outcome = runtime.call_with(&environment, config.to_string().as_bytes());
        let code = if outcome.success { 0 } else { outcome.printed["code"].as_u64().unwrap() };
        assert_eq!(code, call.code, "{}: {} {config}: {}", path.display(), call.verb, outcome.printed);
        if call.verb == "ADD" && outcome.success {
            result = outcome.printed;
        }
    }
    assert!(!runtime.inventory().has("link veth"), "{}", path.display());
}

#[test]
fn every_recorded_caller_gets_what_it_expects() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance/callers");
    let mut recordings: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    recordings.sort();
    assert!(recordings.len() >= 5);
    recordings.iter().for_each(|path| play(path));
}

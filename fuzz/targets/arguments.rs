//! `CNI_ARGS` (the input's first line) and `prevResult` (the rest): whatever can be read can be said again in every
//! version of the specification, and reads as what was said.
#![no_main]
#![allow(clippy::unwrap_used, reason = "a target that panics has found something")]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use shunt::call::{Arguments, Verb, Version};
use shunt::config::Config;
use shunt::result::AddResult;

fuzz_target!(|input: &str| {
    let (arguments, result) = input.split_once('\n').unwrap_or((input, "{}"));
    if let Ok(arguments) = Arguments::parse(arguments) {
        assert!(arguments.ips.iter().all(|ip| !ip.is_empty()));
        assert_ne!(arguments.mac.as_deref(), Some(""));
    }
    for version in Version::ALL {
        let config = format!(
            r#"{{"cniVersion":"{}","name":"n","type":"shunt","prevResult":{result}}}"#,
            version.as_str()
        );
        let Ok(value) = Config::parse(config.as_bytes()) else {
            continue;
        };
        let Ok(config) = Config::read(config.into_bytes(), value, "shunt", Verb::Add) else {
            continue;
        };
        if let Ok(Some(result)) = config.prev_result() {
            Version::ALL.into_iter().for_each(|version| say_again(&result, version));
        }
    }
});

/// What one version has no words for is lost the first time; from then on nothing more may be.
fn say_again(result: &AddResult, version: Version) {
    let Ok(said) = result.to_json(version) else {
        assert!(version < Version::V0_3_0 && result.ips.is_empty());
        return;
    };
    let heard = AddResult::from_json(&said, version).unwrap();
    let again: Value = heard.to_json(version).unwrap();
    assert_eq!(again, said);
}

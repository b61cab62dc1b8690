//! Standard input of the plugin: any bytes are answered with JSON, under every name that it goes by.
#![no_main]
#![allow(clippy::unwrap_used, reason = "a target that panics has found something")]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use shunt::Reply;

/// The names of the executable by which it behaves differently.
const NAMES: [&str; 3] = ["shunt", "bridge", "shunt-ipam"];

fuzz_target!(|config: &[u8]| {
    for name in NAMES {
        // The one verb that reads everything and touches nothing.
        let environment = |variable: &str| (variable == "CNI_COMMAND").then(|| "VALIDATE".into());
        match shunt::run(Path::new(name), environment, config) {
            Reply::Done(said) => assert_eq!(said, ""),
            Reply::Failed(said) => {
                let error: Value = serde_json::from_str(&said).unwrap();
                assert!(error["code"].as_u64().is_some_and(|code| code > 0), "{said}");
                assert!(error["msg"].as_str().is_some_and(|message| !message.is_empty()), "{said}");
                assert!(error["cniVersion"].is_string(), "{said}");
            }
            Reply::About => panic!("a runtime was told about the plugin"),
        }
    }
});

//! The CNI service: bytes of a call's message. They are refused with an error of CNI, or each plugin of their list would be given an object
//! with its name and its network's.
#![no_main]
#![allow(clippy::unwrap_used, reason = "a target that panics has found something")]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use shunt_cni::Failure;
use shunt_cni::understood::{Method, understand};

fuzz_target!(|input: &[u8]| {
    let (&method, message) = input.split_first().unwrap_or((&0, &[]));
    let method = Method::ALL[usize::from(method) % Method::ALL.len()];
    match understand(method, message) {
        Ok(given) => given.iter().for_each(|config| {
            let config: Value = serde_json::from_slice(config).unwrap();
            assert!(config["type"].is_string() && config["name"].is_string(), "{config}");
        }),
        Err(failure) => {
            assert!(failure.code != 0 && !failure.msg.is_empty(), "{failure:?}");
            // It reaches the client whole.
            assert_eq!(Failure::of_status(&failure.to_status()).unwrap(), Some(failure));
        }
    }
});

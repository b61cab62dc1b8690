//! What plugin and agent of the release before have said to each other, byte for byte (`earlier/`): this one reads it whole, and what
//! it says itself may say more than its reader knows.
//!
//! A release that changes a message adds the earlier shape here. It was recorded between the programs of the commit `d96415a`.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::fs;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use shunt_agent_api::{Envelope, Reply, Request};

const VERBS: [&str; 5] = ["attach", "check", "collect", "detach", "status"];

/// A request of the earlier plugin's and the earlier agent's reply.
fn exchange(verb: &str) -> (Value, Value) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/earlier/{verb}.json"));
    let mut both: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    (both["request"].take(), both["reply"].take())
}

/// Reads a message, and writes it again.
fn read<T: DeserializeOwned + Serialize>(message: &Value) -> Value {
    let read = Envelope::<T>::open(message.to_string().as_bytes());
    serde_json::to_value(read.unwrap_or_else(|error| panic!("{error}: {message}"))).unwrap()
}

/// Fails at what is in one and not, or otherwise, in the other.
fn assert_has_all(all: &Value, of: &Value, at: &str) {
    match (all, of) {
        (Value::Object(all), Value::Object(of)) => of.iter().for_each(|(key, value)| {
            let has = all.get(key).unwrap_or_else(|| panic!("{at}.{key} is lost"));
            assert_has_all(has, value, &format!("{at}.{key}"));
        }),
        (Value::Array(all), Value::Array(of)) => {
            assert_eq!(all.len(), of.len(), "{at}");
            all.iter().zip(of).for_each(|(all, of)| assert_has_all(all, of, at));
        }
        _ => assert_eq!(all, of, "{at}"),
    }
}

/// A message as the next release may say it: with a key more in each object.
fn with_more(message: &Value) -> Value {
    match message {
        Value::Object(all) => {
            let mut more: serde_json::Map<_, _> =
                all.iter().map(|(key, value)| (key.clone(), with_more(value))).collect();
            more.insert("of-the-next-release".to_owned(), json!({ "any": [1] }));
            Value::Object(more)
        }
        Value::Array(all) => all.iter().map(with_more).collect(),
        other => other.clone(),
    }
}

#[test]
fn an_earlier_plugins_requests_are_what_this_one_would_say() {
    for verb in VERBS {
        let (request, _) = exchange(verb);
        assert_eq!(read::<Request>(&request), request, "{verb}");
    }
}

#[test]
fn an_earlier_agents_replies_are_read_whole() {
    for verb in VERBS {
        let (_, reply) = exchange(verb);
        assert_has_all(&read::<Reply>(&reply), &reply, verb);
    }
}

#[test]
fn what_the_next_release_says_beside_it_is_passed_over() {
    for verb in VERBS {
        let (request, reply) = exchange(verb);
        assert_eq!(read::<Request>(&with_more(&request)), read::<Request>(&request), "{verb}");
        assert_eq!(read::<Reply>(&with_more(&reply)), read::<Reply>(&reply), "{verb}");
    }
}

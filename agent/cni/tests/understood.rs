//! Messages that are broken anywhere: those of the fuzzer's corpus, and what becomes of them by a few changed bytes.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use serde_json::Value;
use shunt_cni::Failure;
use shunt_cni::understood::{Method, understand};

fn corpus() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/message");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.into_iter().map(|path| fs::read(path).unwrap()).collect()
}

/// A method by the first byte, and what comes of the rest: how many plugins would be given something, or the error.
fn read(input: &[u8]) -> Result<usize, Failure> {
    let (&method, message) = input.split_first().unwrap_or((&0, &[]));
    let given = understand(Method::ALL[usize::from(method) % Method::ALL.len()], message)?;
    for config in &given {
        let config: Value = serde_json::from_slice(config).unwrap();
        assert!(config["type"].is_string() && config["name"].is_string(), "{config}");
    }
    Ok(given.len())
}

#[test]
fn the_corpus_has_messages_of_every_method_that_are_understood() {
    let corpus = corpus();
    for number in 0..Method::ALL.len() {
        let of_it = corpus.iter().filter(|input| usize::from(input[0]) % Method::ALL.len() == number);
        assert!(of_it.map(|input| read(input)).any(|read| read.is_ok()), "{:?}", Method::ALL[number]);
    }
}

proptest! {
    #[test]
    fn a_broken_message_is_refused_with_an_error_or_understood(
        input in prop::sample::select(corpus()),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..3), 1..6),
    ) {
        let mut input = input;
        for (at, byte, how) in changes {
            let at = at.index(input.len().max(1));
            match how {
                0 => input.insert(at, byte),
                1 if !input.is_empty() => drop(input.remove(at)),
                _ if !input.is_empty() => input[at] = byte,
                _ => {}
            }
        }
        if let Err(failure) = read(&input) {
            prop_assert!(failure.code != 0 && !failure.msg.is_empty(), "{:?}", failure);
            // It reaches the client whole.
            prop_assert_eq!(Failure::of_status(&failure.to_status()).unwrap(), Some(failure));
        }
    }
}

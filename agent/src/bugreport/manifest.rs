//! What is in the archive, and what is not.

use std::time::{Duration, SystemTime};

use serde::Serialize;
use shunt_dataplane::abi::ABI_VERSION;

/// What became of one part.
#[derive(Clone, Debug, Default, Serialize)]
pub struct PartReport {
    /// Its name in the archive.
    pub file: String,
    /// Its size, if it is there.
    pub bytes: Option<usize>,
    /// What its reader has to know.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Why it is not there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
    /// Whether it should be there.
    pub failed: bool,
}

/// `manifest.json`.
#[derive(Debug, Serialize)]
pub(super) struct Manifest<'a> {
    version: &'static str,
    abi: u32,
    node: &'a str,
    time: String,
    took_ms: u128,
    /// Whether names are hashed.
    hashed: bool,
    left_out: &'static str,
    parts: &'a [PartReport],
}

/// What is in no part.
const LEFT_OUT: &str = "tokens, keys, certificates and what a kubeconfig holds; environments; other plugins' configurations; rules \
                        of others, but for their number";

impl<'a> Manifest<'a> {
    pub(super) fn new(
        node: &'a str,
        time: SystemTime,
        took: Duration,
        hashed: bool,
        parts: &'a [PartReport],
    ) -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION"),
            abi: ABI_VERSION,
            node,
            time: humantime::format_rfc3339_seconds(time).to_string(),
            took_ms: took.as_millis(),
            hashed,
            left_out: LEFT_OUT,
            parts,
        }
    }
}

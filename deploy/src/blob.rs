//! Bytes that are named by their digest.

use anyhow::{Context, Result};
use oci_spec::image::{Descriptor, DescriptorBuilder, MediaType, Sha256Digest};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// What a layout keeps under `blobs/sha256`.
#[derive(Clone, Debug)]
pub(crate) struct Blob {
    pub(crate) media_type: MediaType,
    pub(crate) bytes: Vec<u8>,
}

impl Blob {
    /// An object as JSON. Keys are sorted: the order in which a hash table gives them is another one in each process.
    pub(crate) fn json(media_type: MediaType, object: &impl serde::Serialize) -> Result<Self> {
        let mut value = serde_json::to_value(object).context("an object of the image is no JSON")?;
        value.sort_all_objects();
        Ok(Self { media_type, bytes: compact(&value) })
    }

    /// The SHA-256 of the bytes in hexadecimal digits.
    pub(crate) fn digest(&self) -> String {
        sha256(&self.bytes)
    }

    /// How another object names it.
    pub(crate) fn descriptor(&self) -> Result<Descriptor> {
        let digest: Sha256Digest = self.digest().parse().context("a digest is one")?;
        let size = u64::try_from(self.bytes.len()).context("a blob's size")?;
        DescriptorBuilder::default()
            .media_type(self.media_type.clone())
            .size(size)
            .digest(digest)
            .build()
            .context("a descriptor")
    }
}

pub(crate) fn compact(value: &Value) -> Vec<u8> {
    value.to_string().into_bytes()
}

/// The SHA-256 of bytes in hexadecimal digits.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

//! Decoding as Go's standard library would: an empty text is no address.

use std::net::IpAddr;

use serde::{Deserialize, Deserializer};

/// An optional address; `""` is none.
pub(crate) fn address<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<IpAddr>, D::Error> {
    match Option::<String>::deserialize(deserializer)?.as_deref() {
        None | Some("") => Ok(None),
        Some(text) => text.parse().map(Some).map_err(serde::de::Error::custom),
    }
}

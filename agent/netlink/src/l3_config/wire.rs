//! A message in a state file: its bytes as hexadecimal digits.

use netlink_packet_core::Emitable;
use serde::{Deserialize as _, Deserializer, Serializer, de};

use crate::attribute::emitted;
use crate::request::Reply;

pub(super) fn serialize<M: Emitable, S: Serializer>(message: &M, serializer: S) -> Result<S::Ok, S::Error> {
    let text: String = emitted(message).iter().map(|byte| format!("{byte:02x}")).collect();
    serializer.serialize_str(&text)
}

pub(super) fn deserialize<'de, M: Reply, D: Deserializer<'de>>(deserializer: D) -> Result<M, D::Error> {
    let text = String::deserialize(deserializer)?;
    let pairs = text.as_bytes().chunks(2).map(|pair| match std::str::from_utf8(pair) {
        Ok(digits) if pair.len() == 2 => u8::from_str_radix(digits, 16).ok(),
        _ => None,
    });
    let bytes: Option<Vec<u8>> = pairs.collect();
    let bytes = bytes.ok_or_else(|| de::Error::custom("not pairs of hexadecimal digits"))?;
    M::read(&bytes).ok_or_else(|| de::Error::custom("not a message of netlink"))
}

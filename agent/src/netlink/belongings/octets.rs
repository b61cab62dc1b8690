//! Bytes in a state file, as hexadecimal digits.

use serde::{Deserialize as _, Deserializer, Serializer, de};

pub(super) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    serializer.serialize_str(&text)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let pairs = text.as_bytes().chunks(2);
    let read = |pair: &[u8]| match std::str::from_utf8(pair) {
        Ok(digits) if pair.len() == 2 => u8::from_str_radix(digits, 16).ok(),
        _ => None,
    };
    pairs.map(|pair| read(pair).ok_or_else(|| de::Error::custom("not pairs of hexadecimal digits"))).collect()
}

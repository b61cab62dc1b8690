//! Durations as people write them: `500ms`, `30s`, `2m`.

use std::time::Duration;

use serde::{Deserialize, Deserializer};

/// Reads a duration of at least a millisecond.
pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
    let Some(text) = Option::<String>::deserialize(from)? else { return Ok(None) };
    match parse(&text) {
        Some(duration) => Ok(Some(duration)),
        None => Err(serde::de::Error::custom(format!("`{text}` is no duration, as 500ms, 30s and 2m are"))),
    }
}

fn parse(text: &str) -> Option<Duration> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().ok().filter(|number| *number > 0)?;
    let milliseconds = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        _ => return None,
    };
    number.checked_mul(milliseconds).map(Duration::from_millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_a_number_with_its_unit() {
        for (text, milliseconds) in [("500ms", 500), ("30s", 30_000), ("2m", 120_000)] {
            assert_eq!(parse(text), Some(Duration::from_millis(milliseconds)), "{text}");
        }
        for text in
            ["", "5", "s", "0s", "-1s", "1.5s", "1h", "1 s", "99999999999999999999s", "9999999999999999999m"]
        {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}

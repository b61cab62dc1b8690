//! How large the packets are that a veth's ends are handed and merge (`bigTcp`).

use std::fmt;
use std::ops::RangeInclusive;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// What a veth's ends take unless they are told otherwise (`GSO_LEGACY_MAX_SIZE`, linux/netdevice.h).
pub const USUAL_PACKETS: u32 = 65_536;

/// The most that they can take (`GSO_MAX_SIZE`, Linux 5.19).
pub const LARGEST_PACKETS: u32 = 8 * 65_535;

/// The largest packets in bytes that a veth's ends are handed, and merge, by family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Packets {
    /// Of IPv4.
    pub ipv4: u32,
    /// Of IPv6.
    pub ipv6: u32,
}

impl Packets {
    /// What a veth takes unless it is told otherwise.
    pub const USUAL: Self = Self::of_both(USUAL_PACKETS);

    /// The same size of both families.
    #[must_use]
    pub const fn of_both(size: u32) -> Self {
        Self { ipv4: size, ipv6: size }
    }

    /// Whether those of any family are larger than usual.
    #[must_use]
    pub fn are_large(self) -> bool {
        self.ipv4.max(self.ipv6) > USUAL_PACKETS
    }
}

/// The sizes that may be asked for.
const BYTES: RangeInclusive<u32> = USUAL_PACKETS..=LARGEST_PACKETS;

/// How large the packets of a veth are: `auto`, `off` or a number of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BigTcp {
    /// Those of IPv4 as large as every way out of the node takes them, those of IPv6 64 KiB: Linux 6.18 forwards larger ones badly.
    Auto,
    /// 64 KiB.
    #[default]
    Off,
    /// So many bytes: 65536 to 524280.
    Bytes(u32),
}

impl BigTcp {
    fn of_bytes(bytes: u64) -> Result<Self, String> {
        let size = u32::try_from(bytes).ok().filter(|size| BYTES.contains(size));
        size.map(Self::Bytes)
            .ok_or_else(|| format!("{bytes} is not between {USUAL_PACKETS} and {LARGEST_PACKETS} bytes"))
    }

    fn of_word(word: &str) -> Result<Self, String> {
        match word {
            "auto" => Ok(Self::Auto),
            "off" => Ok(Self::Off),
            _ => Err(format!("`{word}` is none of auto, off, and a number of bytes")),
        }
    }
}

impl Serialize for BigTcp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Auto => serializer.serialize_str("auto"),
            Self::Off => serializer.serialize_str("off"),
            Self::Bytes(bytes) => serializer.serialize_u32(*bytes),
        }
    }
}

impl<'de> Deserialize<'de> for BigTcp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl de::Visitor<'_> for Reader {
    type Value = BigTcp;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("auto, off or a number of bytes")
    }

    fn visit_str<E: de::Error>(self, word: &str) -> Result<BigTcp, E> {
        BigTcp::of_word(word).map_err(E::custom)
    }

    fn visit_u64<E: de::Error>(self, bytes: u64) -> Result<BigTcp, E> {
        BigTcp::of_bytes(bytes).map_err(E::custom)
    }

    fn visit_i64<E: de::Error>(self, bytes: i64) -> Result<BigTcp, E> {
        let size = u64::try_from(bytes).map_err(|_| E::custom(format!("{bytes} is negative")))?;
        self.visit_u64(size)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(value: Value) -> Result<BigTcp, String> {
        serde_json::from_value(value).map_err(|error| error.to_string())
    }

    #[test]
    fn a_word_and_a_number_are_read_as_they_are_written() {
        for (written, meant) in [
            (json!("auto"), BigTcp::Auto),
            (json!("off"), BigTcp::Off),
            (json!(65_536), BigTcp::Bytes(USUAL_PACKETS)),
            (json!(524_280), BigTcp::Bytes(LARGEST_PACKETS)),
        ] {
            assert_eq!(read(written.clone()), Ok(meant));
            assert_eq!(serde_json::to_value(meant).unwrap(), written);
        }
        assert_eq!(BigTcp::default(), BigTcp::Off);
    }

    #[test]
    fn all_else_is_refused_with_what_may_be_said() {
        for (wrong, why) in [
            (json!("on"), "none of auto, off"),
            (json!("131072"), "none of auto, off"),
            (json!(65_535), "not between 65536 and 524280"),
            (json!(524_281), "not between 65536 and 524280"),
            (json!(1u64 << 33), "not between"),
            (json!(-1), "negative"),
            (json!(true), "auto, off or a number of bytes"),
            (json!(1.5e5), "auto, off or a number of bytes"),
        ] {
            let said = read(wrong.clone()).unwrap_err();
            assert!(said.contains(why), "{wrong}: {said}");
        }
    }
}

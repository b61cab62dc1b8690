//! Kubernetes quantities (apimachinery, `pkg/api/resource/quantity.go`): `10G`, `1953125Ki`, `1.5e9`.
//!
//! All suffixes are read, because an API server answers with another than it was given: `2G` comes back as `1953125Ki`.

use std::fmt;
use std::str::FromStr;

use serde::de::{Deserialize, Deserializer, Error as _, Visitor};
use serde::ser::{Serialize, Serializer};

/// A whole number of units, for rates bits a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Quantity(pub u64);

/// Powers of ten by suffix, largest first.
const DECIMAL: [(&str, i32); 10] =
    [("E", 18), ("P", 15), ("T", 12), ("G", 9), ("M", 6), ("k", 3), ("", 0), ("m", -3), ("u", -6), ("n", -9)];

/// Powers of two by suffix.
const BINARY: [(&str, u32); 6] = [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50), ("Ei", 60)];

/// Digits that a number may have, on both sides of the point together: what 128 bits hold beside any suffix is less.
const MAX_DIGITS: usize = 36;

/// Why a text is no quantity of bandwidth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// There is no number in front.
    #[error("has no number, as 10G has")]
    NoNumber,
    /// What follows the number is no suffix.
    #[error("has a suffix that is none of n, u, m, k, M, G, T, P, E, Ki, Mi, Gi, Ti, Pi, Ei and e3")]
    Suffix,
    /// It is below zero.
    #[error("is negative")]
    Negative,
    /// It does not fit into 64 bits, or has more digits than are read.
    #[error("is larger, or has more digits, than can be counted")]
    TooLarge,
}

impl FromStr for Quantity {
    type Err = QuantityError;

    /// Fractions of a unit are rounded up, as Kubernetes does.
    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let (negative, unsigned) = match text.as_bytes().first() {
            Some(b'-') => (true, &text[1..]),
            Some(b'+') => (false, &text[1..]),
            _ => (false, text),
        };
        let end = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(unsigned.len());
        let (number, suffix) = unsigned.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if fraction.contains('.') || whole.len() + fraction.len() == 0 {
            return Err(QuantityError::NoNumber);
        }
        let (whole, fraction) = (whole.trim_start_matches('0'), fraction.trim_end_matches('0'));
        let (ten, two) = scale(suffix)?;
        if whole.len() + fraction.len() > MAX_DIGITS {
            return Err(QuantityError::TooLarge);
        }
        let digits = whole.bytes().chain(fraction.bytes());
        let mantissa = digits.fold(0u128, |sum, digit| sum * 10 + u128::from(digit - b'0'));
        match mantissa {
            0 => Ok(Self(0)),
            _ if negative => Err(QuantityError::Negative),
            _ => scaled(mantissa, ten - fraction.len() as i32, two).map(Self),
        }
    }
}

/// A suffix as powers of ten and of two.
fn scale(suffix: &str) -> Result<(i32, u32), QuantityError> {
    if let Some((_, ten)) = DECIMAL.iter().find(|(name, _)| *name == suffix) {
        return Ok((*ten, 0));
    }
    if let Some((_, two)) = BINARY.iter().find(|(name, _)| *name == suffix) {
        return Ok((0, *two));
    }
    let exponent = suffix.strip_prefix(['e', 'E']).ok_or(QuantityError::Suffix)?;
    // More than any number of digits could make up for.
    exponent.parse::<i32>().map(|ten| (ten.clamp(-1000, 1000), 0)).map_err(|_| QuantityError::Suffix)
}

/// `mantissa` × 10^`ten` × 2^`two`, rounded up. The mantissa is not 0.
fn scaled(mantissa: u128, ten: i32, two: u32) -> Result<u64, QuantityError> {
    let power = 10u128.checked_pow(ten.unsigned_abs());
    let value = if ten >= 0 {
        power.and_then(|power| mantissa.checked_mul(power)).and_then(|value| value.checked_mul(1 << two))
    } else {
        // Whole and rest apart: their product with 2^60 need not fit before it is divided.
        match power {
            Some(power) => (mantissa / power).checked_mul(1 << two).and_then(|whole| {
                let rest = (mantissa % power).checked_mul(1 << two)?;
                whole.checked_add(rest.div_ceil(power))
            }),
            None => Some(1),
        }
    };
    value.and_then(|value| u64::try_from(value).ok()).ok_or(QuantityError::TooLarge)
}

impl fmt::Display for Quantity {
    /// In Kubernetes' canonical decimal form: the largest suffix that leaves a whole number.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fits =
            |(_, ten): &&(&str, i32)| *ten >= 0 && self.0.is_multiple_of(10u64.pow(ten.unsigned_abs()));
        match DECIMAL.iter().find(fits) {
            Some((suffix, ten)) if self.0 > 0 => {
                write!(f, "{}{suffix}", self.0 / 10u64.pow(ten.unsigned_abs()))
            }
            _ => write!(f, "{}", self.0),
        }
    }
}

impl Serialize for Quantity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = Quantity;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of bits a second, as 10000000000 or \"10G\"")
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Quantity, E> {
                text.parse().map_err(|error| E::custom(format_args!("{text:?} {error}")))
            }
            fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Quantity, E> {
                Ok(Quantity(number))
            }
            fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Quantity, E> {
                u64::try_from(number).map(Quantity).map_err(|_| E::custom(QuantityError::Negative))
            }
        }
        deserializer.deserialize_any(Text).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> Result<u64, QuantityError> {
        text.parse::<Quantity>().map(|quantity| quantity.0)
    }

    #[test]
    fn every_suffix_means_its_power() {
        let cases: [(&str, u64); 28] = [
            ("0", 0),
            ("7", 7),
            ("+7", 7),
            ("-0", 0),
            ("2k", 2_000),
            ("2M", 2_000_000),
            ("2G", 2_000_000_000),
            ("1953125Ki", 2_000_000_000),
            ("2T", 2_000_000_000_000),
            ("2P", 2_000_000_000_000_000),
            ("2E", 2_000_000_000_000_000_000),
            ("3Ki", 3 << 10),
            ("3Mi", 3 << 20),
            ("3Gi", 3 << 30),
            ("3Ti", 3 << 40),
            ("3Pi", 3 << 50),
            ("3Ei", 3 << 60),
            ("1500m", 2),
            ("1000000u", 1),
            ("1n", 1),
            ("1.5G", 1_500_000_000),
            (".5k", 500),
            ("5.", 5),
            ("1.5Ki", 1536),
            ("2e3", 2000),
            ("2E+3", 2000),
            ("25e-1", 3),
            ("1e-1000000", 1),
        ];
        for (text, value) in cases {
            assert_eq!(read(text), Ok(value), "{text}");
        }
    }

    #[test]
    fn what_is_no_quantity_is_refused_by_its_fault() {
        let cases = [
            ("", QuantityError::NoNumber),
            ("G", QuantityError::NoNumber),
            (".", QuantityError::NoNumber),
            ("1.2.3", QuantityError::NoNumber),
            ("--1", QuantityError::NoNumber),
            ("1K", QuantityError::Suffix),
            ("1g", QuantityError::Suffix),
            ("1 G", QuantityError::Suffix),
            ("1Gbit", QuantityError::Suffix),
            ("1e", QuantityError::Suffix),
            ("1e99999999999", QuantityError::Suffix),
            ("-1", QuantityError::Negative),
            ("19E", QuantityError::TooLarge),
            ("16Ei", QuantityError::TooLarge),
            ("1e1000", QuantityError::TooLarge),
            ("1234567890123456789012345678901234567", QuantityError::TooLarge),
        ];
        for (text, error) in cases {
            assert_eq!(read(text), Err(error), "{text}");
        }
    }

    #[test]
    fn a_file_may_have_numbers_and_texts() {
        #[derive(serde::Deserialize)]
        struct File {
            rate: Quantity,
        }
        let rate = |text: &str| toml::from_str::<File>(text).map(|file| file.rate.0);
        assert_eq!(rate("rate = 5").unwrap(), 5);
        assert_eq!(rate("rate = '10G'").unwrap(), 10_000_000_000);
        let error = rate("rate = '10Q'").unwrap_err().to_string();
        assert!(error.contains("10Q") && error.contains("suffix"), "{error}");
        assert!(rate("rate = -5").is_err() && rate("rate = 1.5").is_err());
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(value: u64) {
            prop_assert_eq!(Quantity(value).to_string().parse(), Ok(Quantity(value)));
        }

        #[test]
        fn a_round_value_is_written_short_and_read_again(value in 1u64..1000, power in 0u32..6) {
            let quantity = Quantity(value * 1000u64.pow(power));
            let text = quantity.to_string();
            prop_assert!(text.len() <= 4, "{}", text);
            prop_assert_eq!(text.parse(), Ok(quantity));
        }

        #[test]
        fn a_suffix_scales_whatever_stands_before_it(number in 0u32..1000, which in 0usize..16) {
            let decimal = DECIMAL.iter().map(|(name, ten)| (*name, 10f64.powi(*ten)));
            let binary = BINARY.iter().map(|(name, two)| (*name, 2f64.powi(*two as i32)));
            let (suffix, factor) = decimal.chain(binary).nth(which).unwrap();
            let exact = f64::from(number) * factor;
            match read(&format!("{number}{suffix}")) {
                Ok(value) if factor < 1.0 => {
                    prop_assert!(value as f64 + 1e-6 >= exact && (value as f64) < exact + 1.000_001);
                }
                Ok(value) => prop_assert!((value as f64 - exact).abs() <= exact * 1e-9),
                Err(error) => {
                    prop_assert_eq!(error, QuantityError::TooLarge);
                    prop_assert!(exact >= u64::MAX as f64);
                }
            }
        }

        #[test]
        fn no_text_makes_it_panic(text in "[-+]?[0-9.]{0,50}[a-zA-Z0-9+-]{0,6}|.*") {
            let _read = read(&text);
        }
    }
}

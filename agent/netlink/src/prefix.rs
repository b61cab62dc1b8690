//! Prefixes as text, read as strictly as the standard library reads addresses. `ipnet` takes `010.0.0.0/8` for `10.0.0.0/8`, which others read as
//! octal.

use std::net::IpAddr;

use ipnet::IpNet;
use serde::{Deserialize as _, Deserializer, de};

/// The text is not `address/length`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an address with a prefix length")]
pub struct PrefixError(String);

/// Reads `10.1.2.3/24`; bits behind the prefix are kept, because an interface's address has them.
///
/// # Errors
/// [`PrefixError`].
pub fn parse(text: &str) -> Result<IpNet, PrefixError> {
    let read = || {
        let (address, length) = text.split_once('/')?;
        let digits = length.bytes().all(|byte| byte.is_ascii_digit());
        let length = length.parse().ok().filter(|_| digits)?;
        IpNet::new(address.parse::<IpAddr>().ok()?, length).ok()
    };
    read().ok_or_else(|| PrefixError(text.to_owned()))
}

/// Whether a prefix is of IPv4 addresses in IPv6 (`::ffff:0:0/96`, RFC 4291 section 2.5.5.2), which nobody means.
pub fn is_mapped(prefix: &IpNet) -> bool {
    matches!(prefix, IpNet::V6(v6) if v6.addr().to_ipv4_mapped().is_some())
}

/// Reads a prefix, as [`parse`] does, of a text in JSON.
///
/// # Errors
/// The deserializer's.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<IpNet, D::Error> {
    parse(&String::deserialize(deserializer)?).map_err(de::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_a_prefix_is_refused() {
        let not =
            ["", "10.0.0.1", "10.0.0.1/", "10.0.0.1/33", "fd00::/129", "10.0.0.1/+4", "10.0.0/8", "x/8"];
        for text in not.into_iter().chain(["010.0.0.0/8", "10.0.0.0/-1", " 10.0.0.0/8"]) {
            assert!(parse(text).is_err(), "{text}");
        }
        assert_eq!(parse("10.1.2.3/20").unwrap().to_string(), "10.1.2.3/20");
        assert_eq!(parse("fd00::1/0").unwrap().to_string(), "fd00::1/0");
    }
}

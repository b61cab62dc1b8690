//! An address with the length of its network's prefix, as CNI writes them: `10.1.2.3/24`.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An address and a prefix length; bits behind the prefix are kept, because an interface's address has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prefix {
    address: IpAddr,
    length: u8,
}

/// The text is not `address/length`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an address with a prefix length")]
pub struct PrefixError(String);

impl Prefix {
    /// Joins an address and a length in bits; none when the length exceeds the family's.
    pub fn new(address: IpAddr, length: u8) -> Option<Self> {
        (length <= width(address)).then_some(Self { address, length })
    }

    /// Everything: `0.0.0.0/0` or `::/0`, of the family of `address`.
    pub fn default_route(address: IpAddr) -> Self {
        let address = match address {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        Self { address, length: 0 }
    }

    /// The address with its host bits.
    pub fn address(self) -> IpAddr {
        self.address
    }

    /// The prefix length in bits.
    pub fn length(self) -> u8 {
        self.length
    }

    /// The network's first address: the host bits are zero.
    pub fn network(self) -> IpAddr {
        match self.address {
            IpAddr::V4(address) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.length)).unwrap_or(0);
                IpAddr::V4(Ipv4Addr::from_bits(address.to_bits() & mask))
            }
            IpAddr::V6(address) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.length)).unwrap_or(0);
                IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & mask))
            }
        }
    }

    /// The address that a gateway has unless something else is said: the network's first plus one.
    pub fn first_host(self) -> IpAddr {
        match self.network() {
            IpAddr::V4(address) => IpAddr::V4(Ipv4Addr::from_bits(address.to_bits().wrapping_add(1))),
            IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits().wrapping_add(1))),
        }
    }

    /// Whether `address` is of this family and inside the network.
    pub fn contains(self, address: IpAddr) -> bool {
        self.address.is_ipv4() == address.is_ipv4()
            && Self { address, length: self.length }.network() == self.network()
    }
}

fn width(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

impl FromStr for Prefix {
    type Err = PrefixError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || PrefixError(text.to_owned());
        let (address, length) = text.split_once('/').ok_or_else(error)?;
        let address: IpAddr = address.parse().map_err(|_| error())?;
        let digits = !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit());
        let length = length.parse().ok().filter(|_| digits).ok_or_else(error)?;
        Self::new(address, length).ok_or_else(error)
    }
}

impl Serialize for Prefix {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Prefix {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
impl schemars::JsonSchema for Prefix {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Prefix".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "description": "An address and a prefix length: `10.1.2.3/24`" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_bits_are_kept_and_the_network_is_without_them() {
        let prefix: Prefix = "10.1.2.3/20".parse().unwrap();
        assert_eq!(prefix.to_string(), "10.1.2.3/20");
        assert_eq!(prefix.network().to_string(), "10.1.0.0");
        assert_eq!(prefix.first_host().to_string(), "10.1.0.1");
    }

    #[test]
    fn the_widest_and_the_narrowest_prefix_do_not_overflow() {
        let all: Prefix = "fd00::1/0".parse().unwrap();
        assert!(all.contains("1::".parse().unwrap()) && !all.contains("1.2.3.4".parse().unwrap()));
        let one: Prefix = "255.255.255.255/32".parse().unwrap();
        assert_eq!(one.network(), one.address());
        assert_eq!(one.first_host().to_string(), "0.0.0.0");
    }

    #[test]
    fn what_is_not_a_prefix_is_refused() {
        for text in
            ["", "10.0.0.1", "10.0.0.1/", "10.0.0.1/33", "fd00::/129", "10.0.0.1/+4", "10.0.0/8", "x/8"]
        {
            assert!(text.parse::<Prefix>().is_err(), "{text}");
        }
    }
}

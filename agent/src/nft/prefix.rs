//! An address prefix (RFC 4632, RFC 4291 section 2.3).

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// Why a text is no prefix.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an address prefix such as 10.1.0.0/16")]
pub struct PrefixError(String);

/// The addresses that share their first `bits` bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prefix {
    /// Any of those addresses.
    address: IpAddr,
    bits: u8,
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

impl FromStr for Prefix {
    type Err = PrefixError;

    /// Reads `address/bits`; what is behind the prefix in the address does not matter.
    fn from_str(text: &str) -> Result<Self, PrefixError> {
        let fail = || PrefixError(text.to_owned());
        let (address, bits) = text.split_once('/').ok_or_else(fail)?;
        let address: IpAddr = address.parse().map_err(|_| fail())?;
        let bits: u8 = bits.parse().map_err(|_| fail())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        (bits <= most).then_some(Self { address, bits }).ok_or_else(fail)
    }
}

impl Prefix {
    /// An address with the length of its subnet's prefix.
    pub const fn new(address: IpAddr, bits: u8) -> Self {
        Self { address, bits }
    }

    /// An address alone.
    pub const fn of_one(address: IpAddr) -> Self {
        Self { address, bits: if address.is_ipv4() { 32 } else { 128 } }
    }

    /// The address, with what is behind the prefix.
    pub const fn address(&self) -> IpAddr {
        self.address
    }

    /// How long the prefix is.
    pub const fn bits(&self) -> u8 {
        self.bits
    }

    /// Whether it is of IPv4.
    pub const fn is_v4(&self) -> bool {
        self.address.is_ipv4()
    }

    /// Whether it is the address's.
    pub fn has(&self, address: IpAddr) -> bool {
        address.is_ipv4() == self.is_v4() && Self { address, bits: self.bits }.first() == self.first()
    }

    /// The mask, in network order.
    pub fn mask(&self) -> Vec<u8> {
        let bytes = if self.is_v4() { 4 } else { 16 };
        (0..bytes)
            .map(|byte| {
                let ones = u32::from(self.bits).saturating_sub(byte * 8).min(8);
                u8::try_from(0xff00u32 >> ones & 0xff).unwrap_or(0)
            })
            .collect()
    }

    /// The bits of a whole address.
    pub const fn longest(&self) -> u32 {
        if self.is_v4() { 32 } else { 128 }
    }

    /// The lowest of its addresses.
    pub fn first(&self) -> IpAddr {
        let kept = self.longest() - u32::from(self.bits);
        match self.address {
            IpAddr::V4(v4) => {
                Ipv4Addr::from_bits(v4.to_bits() & u32::MAX.checked_shl(kept).unwrap_or(0)).into()
            }
            IpAddr::V6(v6) => {
                Ipv6Addr::from_bits(v6.to_bits() & u128::MAX.checked_shl(kept).unwrap_or(0)).into()
            }
        }
    }

    /// The lowest of its addresses, in network order.
    pub fn network(&self) -> Vec<u8> {
        match self.first() {
            IpAddr::V4(v4) => v4.octets().to_vec(),
            IpAddr::V6(v6) => v6.octets().to_vec(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_masks_what_is_behind_it() {
        let prefix: Prefix = "10.77.130.9/17".parse().unwrap();
        assert_eq!(prefix.mask(), [255, 255, 128, 0]);
        assert_eq!(prefix.network(), [10, 77, 128, 0]);
        let prefix: Prefix = "fd77:1::5/28".parse().unwrap();
        assert_eq!(prefix.network()[..6], [0xfd, 0x77, 0, 0, 0, 0]);
        assert_eq!("1.2.3.4/0".parse::<Prefix>().unwrap().network(), [0; 4]);
        assert_eq!("fd00::1/0".parse::<Prefix>().unwrap().network(), [0; 16]);
        assert_eq!("0.0.0.0/0".parse::<Prefix>().unwrap().mask(), [0; 4]);
        assert_eq!("::1/128".parse::<Prefix>().unwrap().mask(), [0xff; 16]);
    }

    #[test]
    fn a_prefix_has_its_own_addresses_only() {
        let prefix: Prefix = "10.77.130.9/17".parse().unwrap();
        let has = |address: &str| prefix.has(address.parse().unwrap());
        assert!(has("10.77.128.1") && has("10.77.255.255"));
        assert!(!has("10.77.127.255") && !has("::ffff:10.77.128.1"));
    }

    #[test]
    fn what_is_no_prefix_is_refused() {
        for text in ["", "10.0.0.0", "10.0.0.0/33", "::/129", "10.0.0/8", "a/8", "10.0.0.0/-1"] {
            assert!(text.parse::<Prefix>().is_err(), "{text}");
        }
    }
}

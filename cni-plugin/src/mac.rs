//! Ethernet addresses.

use std::fmt;
use std::str::FromStr;

use crate::random;

/// A 48-bit address in transmission order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mac([u8; 6]);

/// The text is not six hexadecimal bytes, or the address cannot be an interface's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not the address of an Ethernet interface")]
pub struct MacError(String);

impl Mac {
    /// Takes six bytes as they are.
    pub fn new(bytes: [u8; 6]) -> Self {
        Self(bytes)
    }

    /// A random address, as the kernel would give one.
    pub fn random() -> Self {
        let [a, b, c, d, e, f, _, _] = random::bytes();
        Self::locally_administered([a, b, c, d, e, f])
    }

    /// Makes an address of random bytes that is unicast and locally administered (IEEE 802, bits 0 and 1).
    fn locally_administered(mut random: [u8; 6]) -> Self {
        random[0] = (random[0] | 0b10) & !1;
        Self(random)
    }

    /// The bytes in transmission order.
    pub fn bytes(self) -> [u8; 6] {
        self.0
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl FromStr for Mac {
    type Err = MacError;

    /// Reads `aa:bb:cc:dd:ee:ff` or `aa-bb-cc-dd-ee-ff`; group and zero addresses are refused as the kernel would.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || MacError(text.to_owned());
        let mut bytes = [0; 6];
        let mut parts = text.split([':', '-']);
        for byte in &mut bytes {
            let part = parts.next().filter(|part| part.len() == 2).ok_or_else(error)?;
            *byte = u8::from_str_radix(part, 16).map_err(|_| error())?;
        }
        let usable = parts.next().is_none() && bytes[0] & 1 == 0 && bytes != [0; 6];
        usable.then_some(Self(bytes)).ok_or_else(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_written_as_it_is_read() {
        assert_eq!("0A:1b-2c:3d:4e:5f".parse::<Mac>().unwrap().to_string(), "0a:1b:2c:3d:4e:5f");
    }

    #[test]
    fn addresses_that_no_interface_can_have_are_refused() {
        for text in
            ["", "02:00:00:00:00", "02:00:00:00:00:00:00", "01:00:5e:00:00:01", "00:00:00:00:00:00", "+2:0:0"]
        {
            assert!(text.parse::<Mac>().is_err(), "{text}");
        }
    }

    #[test]
    fn random_addresses_are_unicast_and_local() {
        assert_eq!(Mac::locally_administered([0xff; 6]).bytes()[0] & 0b11, 0b10);
        assert_eq!(Mac::locally_administered([0; 6]).bytes()[0] & 0b11, 0b10);
    }
}

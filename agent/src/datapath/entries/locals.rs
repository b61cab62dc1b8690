//! Map entries of the node's own addresses.

use aya::maps::lpm_trie::Key;
use ipnet::IpNet;
use shunt_dataplane::abi::translation::{LOCAL_BITS, Local, LocalKey};

use crate::datapath::maps::remove_prefix;
use crate::datapath::{Datapath, DatapathError, in_map};

impl Datapath {
    /// Makes the addresses of a prefix the node's.
    ///
    /// # Errors
    /// The kernel's; the map may be full.
    pub fn write_local(&mut self, prefix: IpNet) -> Result<(), DatapathError> {
        let (bits, key) = key(prefix);
        self.maps.locals.insert(&Key::new(bits, key), Local::default(), 0).map_err(in_map("LOCALS"))
    }

    /// Forgets a prefix of the node.
    ///
    /// # Errors
    /// The kernel's.
    pub fn erase_local(&mut self, prefix: IpNet) -> Result<(), DatapathError> {
        remove_prefix(&mut self.maps.locals, key(prefix)).map_err(in_map("LOCALS"))
    }

    /// Removes every other prefix of the node.
    ///
    /// # Errors
    /// The kernel's.
    pub fn retain_locals(&mut self, is_local: impl Fn(IpNet) -> bool) -> Result<(), DatapathError> {
        let keys: Result<Vec<_>, _> = self.maps.locals.keys().collect();
        for known in keys.map_err(in_map("LOCALS"))? {
            let (bits, prefix) = (known.prefix_len(), known.data());
            if !net(bits, prefix).is_some_and(&is_local) {
                remove_prefix(&mut self.maps.locals, (bits, prefix)).map_err(in_map("LOCALS"))?;
            }
        }
        Ok(())
    }
}

/// Bits of the family in front of an IPv4 prefix.
const MAPPED_BITS: u32 = LOCAL_BITS - 32;

fn key(prefix: IpNet) -> (u32, LocalKey) {
    let family = if prefix.addr().is_ipv4() { MAPPED_BITS } else { 0 };
    (family + u32::from(prefix.prefix_len()), LocalKey { address: prefix.network().into() })
}

fn net(bits: u32, key: LocalKey) -> Option<IpNet> {
    let bits = if key.address.is_v4() { bits.checked_sub(MAPPED_BITS)? } else { bits };
    IpNet::new(key.address.into(), u8::try_from(bits).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_as_they_are_written() {
        for text in ["192.0.2.1/32", "10.0.0.0/8", "2001:db8::1/128", "2001:db8::/32", "fe80::1/128"] {
            let prefix: IpNet = text.parse().unwrap();
            let (bits, written) = key(prefix);
            assert_eq!(net(bits, written), Some(prefix));
        }
        assert_eq!(key("10.0.0.0/8".parse().unwrap()).0, 104);
    }
}

//! `MENTIONS`: which addresses stations of a bridge may know already, or wait for.

use super::AddressKey;

/// `MENTIONS`: entries, of [`Mentions`] each. Written by both, and never cleared.
pub const MAX_MENTIONS: u32 = 65_536;

/// Value of `MENTIONS`: a byte for each hash of a bridge and an address; not 0 where somebody may know the address. A hash that two
/// addresses have in common only makes an announcement heard: with a thousand known addresses, one in 500 new ones. A byte and no bit, as whoever sets
/// it need not read it.
pub type Mentions = [u8; 8];

const BYTES: u32 = size_of::<Mentions>() as u32;

/// The entry of an address in `MENTIONS`, and its byte there. The VLAN is not in it: announcements are suppressed outside of VLANs only.
#[inline(always)]
pub const fn mention(key: &AddressKey) -> (u32, usize) {
    let [a, b, c, d] = key.address.words();
    let sum = finished(mixed(mixed(mixed(mixed(key.bridge, a), b), c), d));
    (sum % MAX_MENTIONS, (sum / MAX_MENTIONS % BYTES) as usize)
}

/// A round of a multiplicative hash.
#[inline(always)]
const fn mixed(sum: u32, word: u32) -> u32 {
    let product = (sum ^ word).wrapping_mul(0x9e37_79b1);
    product ^ (product >> 15)
}

/// Has every bit of the last word change the lower ones (MurmurHash3's `fmix32`): addresses on one link differ in their last bytes.
#[inline(always)]
const fn finished(sum: u32) -> u32 {
    let sum = (sum ^ (sum >> 16)).wrapping_mul(0x85eb_ca6b);
    let sum = (sum ^ (sum >> 13)).wrapping_mul(0xc2b2_ae35);
    sum ^ (sum >> 16)
}

#[cfg(test)]
mod tests {
    use core::net::{IpAddr, Ipv4Addr};

    use super::*;
    use crate::wire::address::Address;

    #[test]
    fn few_of_a_subnets_addresses_share_a_byte() {
        let mut known = std::collections::BTreeSet::new();
        let mut shared = 0;
        for last in 0..1024_u32 {
            let address = IpAddr::from(Ipv4Addr::from(0x0a58_0000 + last));
            shared += u32::from(!known.insert(mention(&AddressKey::new(7, 0, Address::from(address)))));
        }
        assert!(shared < 8, "{shared} of 1,024");
    }
}

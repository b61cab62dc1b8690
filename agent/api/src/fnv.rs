//! FNV-1a (draft-eastlake-fnv): numbers of names and addresses, the same in every release and on every node. Two names may have one number.

/// The number of 32 bits.
pub fn of_32_bits(bytes: &[u8]) -> u32 {
    const PRIME: u32 = 0x0100_0193;
    bytes.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(PRIME))
}

/// The number of 64 bits.
pub fn of_64_bits(bytes: &[u8]) -> u64 {
    const PRIME: u64 = 0x0100_0000_01b3;
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(PRIME))
}

/// The number of 128 bits.
pub fn of_128_bits(bytes: &[u8]) -> u128 {
    const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    bytes.iter().fold(BASIS, |hash, byte| (hash ^ u128::from(*byte)).wrapping_mul(PRIME))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_the_draft() {
        let of = |text: &str| {
            let bytes = text.as_bytes();
            (of_32_bits(bytes), of_64_bits(bytes), of_128_bits(bytes))
        };
        assert_eq!(of("a"), (0xe40c_292c, 0xaf63_dc4c_8601_ec8c, 0xd228_cb69_6f1a_8caf_7891_2b70_4e4a_8964));
        let foobar = (0xbf9c_f968, 0x8594_4171_f739_67e8, 0x343e_1662_793c_64bf_6f0d_3597_ba44_6f18);
        assert_eq!(of("foobar"), foobar);
    }
}

//! Random names and addresses.
//!
//! They must be unlikely to collide, not hard to guess, so the standard library's hash keys do: it draws them from the
//! kernel's `getrandom`, and SipHash spreads them over 64 bits.

use std::hash::{BuildHasher, RandomState};

/// Eight random bytes, others each time.
pub(crate) fn bytes() -> [u8; 8] {
    RandomState::new().hash_one(0).to_ne_bytes()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn random_bytes_do_not_repeat() {
        let drawn: HashSet<_> = (0..10_000).map(|_| bytes()).collect();
        assert_eq!(drawn.len(), 10_000);
    }
}

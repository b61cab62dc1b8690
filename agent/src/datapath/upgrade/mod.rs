//! From one map ABI to the next.

mod grown;
pub mod preview;
pub mod versions;

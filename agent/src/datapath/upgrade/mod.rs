//! From one map ABI to the next.

pub mod preview;
pub mod versions;

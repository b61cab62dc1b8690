//! dataplane
#![cfg_attr(not(test), no_std)]
pub mod abi;

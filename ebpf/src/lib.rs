//! The dataplane in plain Rust, with no kernel in it.
//!
//! Read [`programs`] first: each kernel program is one file with its whole pipeline. Its [`stages`] and the address translation
//! ([`nat`]) are pure functions over two traits: [`Packet`] (bounded loads and stores of one frame) and [`Tables`] (every
//! look-up in a map). [`wire`] has headers, addresses and checksums, [`abi`] the layout of the maps. The same source is compiled
//! for the host, where tests run it without privileges, and for `bpfel-unknown-none`, where the crate beside this one wraps kernel
//! contexts in it.

#![cfg_attr(not(test), no_std)]

pub mod abi;
pub mod nat;
pub mod programs;
pub mod reasons;
pub mod stage;
pub mod stages;
pub mod tables;
pub mod verdict;
pub mod wire;

pub use reasons::{DropReason, PassReason};
pub use stage::Stage;
pub use tables::Tables;
pub use verdict::{Delivery, Stop, Verdict, Way};
pub use wire::Packet;

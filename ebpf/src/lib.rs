//! A packet's journey in plain Rust, with no kernel in it.
//!
//! Read [`journey`] first: it is the table of contents. Its stages are pure functions over two traits, [`Packet`]
//! (bounded loads from one frame) and [`Tables`] (every question that is asked of a map). The same source is compiled
//! for the host, where tests run it without privileges, and for `bpfel-unknown-none`, where the programs beside this
//! crate wrap a kernel context in it. [`abi`] is the layout of the maps that both sides share.

#![cfg_attr(not(test), no_std)]

pub mod abi;
pub mod errors;
pub mod journey;
pub mod nat;
pub mod programs;
pub mod stages;
pub mod tables;
pub mod verdict;
pub mod vlan;
pub mod wire;

pub use tables::Tables;
pub use verdict::{Delivery, DropReason, PassReason, Stop, Verdict, Way};
pub use wire::Packet;

//! A packet's journey in plain Rust, with no kernel in it.
//!
//! Read [`journey`] first: it is the table of contents. Its stages are pure functions over two traits, [`Packet`]
//! (bounded loads from one frame) and [`Tables`] (every question that is asked of a map). The same source is compiled
//! for the host, where tests run it without privileges, and for `bpfel-unknown-none`, where the programs beside this
//! crate wrap a kernel context in it. [`abi`] is the layout of the maps that both sides share.

#![cfg_attr(not(test), no_std)]

pub mod abi;
pub mod address;
pub mod admit;
pub mod answer;
pub mod count;
pub mod deliver;
pub mod errors;
pub mod find;
pub mod flow;
pub mod fragments;
pub mod guard;
pub mod isolate;
pub mod journey;
pub mod learn;
pub mod mapped;
pub mod masquerade;
pub mod notice;
pub mod packet;
pub mod parse;
pub mod path;
pub mod police;
pub mod port;
pub mod reach;
pub mod share;
pub mod tables;
pub mod too_big;
pub mod translate;
pub mod verdict;
pub mod vlan;
pub mod vouch;

pub use packet::Packet;
pub use tables::Tables;
pub use verdict::{Delivery, DropReason, PassReason, Stop, Verdict, Way};

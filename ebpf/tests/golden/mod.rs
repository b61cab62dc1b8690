//! Golden packets: annotated bytes with what must become of them, and the small world that they travel through.
//!
//! This crate's tests run them through the pure code; the agent's parity test runs the same files through the loaded
//! programs and compares decision, bytes and counters.

#![allow(dead_code, missing_docs, unreachable_pub)] // Two test crates include this; each uses a part.

pub mod accepted;
pub mod bytes_packet;
pub mod carried_out;
pub mod case;
pub mod connections;
pub mod entry;
pub mod filled_tables;
pub mod interfaces;
pub mod members;
mod memory_accepted_flows;
mod memory_aliases;
mod memory_flows;
mod memory_kernel_flows;
pub mod memory_tables;
pub mod outside;
pub mod shares;
pub mod spared;
pub mod tracked;
pub mod uplinks;
pub mod world;

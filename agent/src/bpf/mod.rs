//! Programs, maps, pins and hooks.
//!
//! Everything survives the agent: maps and tcx links are pinned, clsact filters have a fixed preference and handle. The next agent takes
//! them over without losing a packet.

pub mod clsact;
pub mod decisions;
pub mod hook;
pub mod layout;
pub mod maps;
pub mod mount;
pub mod native;
pub mod object;
pub mod pins;
pub mod probe;
pub mod room;
pub mod sets;
pub mod socket;
pub mod tcx;
pub mod versions;

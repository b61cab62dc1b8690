//! The kernel's side of the agent: programs, maps, pins and the hooks that programs are attached to.
//!
//! Everything outlives the agent. Maps are pinned and used again; tcx links are pinned; clsact filters have a fixed
//! place. So an agent that starts finds its predecessor's work and takes it over without a packet noticing.

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

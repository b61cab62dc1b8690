//! Runs compiled kernel programs in user space, one instruction at a time, and counts.
//!
//! In: a program of an object file, what its maps hold, and a frame. Out: what the program returned and did to the frame,
//! and how many instructions and calls of the kernel that took. So a longer path is seen by its count, on any machine, however
//! busy; a clock would have to be asked on a quiet one.
//!
//! The counts are of the program as it was compiled. What is loaded is a little shorter: the verifier takes out branches that
//! constants decide, and the kernel replaces look-ups in arrays by instructions of its own.
//!
//! Addresses here are numbers of our own ([`memory`]), so a program that goes astray is told so and harms nobody.

#![forbid(unsafe_code)]

mod alu;
mod fault;
mod instruction;
mod kernel_call;
mod machine;
mod map;
mod memory;
mod object;
mod outcome;
mod socket_buffer;

pub use fault::Fault;
pub use kernel_call::{FIB_LOOKUP_BYTES, FibAnswer, Surroundings};
pub use machine::Machine;
pub use map::MapError;
pub use object::{Object, ObjectError};
pub use outcome::{Outcome, Redirect};
pub use socket_buffer::SocketBuffer;

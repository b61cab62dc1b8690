//! Runs compiled kernel programs in user space, one instruction at a time, and counts.
//!
//! In: a program of an object file, its maps' entries, and a frame. Out: the program's result, the frame afterwards, and the number of
//! instructions and helper calls. Unlike times, counts are the same on every machine under any load.
//!
//! The counts are those of the compiled program. The loaded one is a little shorter: the verifier removes branches that constants
//! decide, and the kernel inlines look-ups in arrays.
//!
//! Addresses are numbers of this crate ([`memory`]): a wild access is a fault and does no harm.

#![forbid(unsafe_code)]

mod alu;
mod fault;
mod instruction;
mod kernel;
mod kernel_call;
mod machine;
mod map;
mod memory;
mod object;
mod outcome;
mod socket_buffer;
mod stack;

pub use fault::Fault;
pub use kernel::{FIB_LOOKUP_BYTES, FibAnswer, Surroundings};
pub use machine::Machine;
pub use map::MapError;
pub use object::{Object, ObjectError};
pub use outcome::{Outcome, Redirect};
pub use socket_buffer::SocketBuffer;

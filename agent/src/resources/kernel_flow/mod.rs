//! Connections of containers that are the kernel's: which there are, and which ports look for them.

mod former;
mod learned;
mod lookup;
mod owners;
mod shares;
mod state;
mod sweep;

pub(crate) use self::former::Former;
pub(crate) use self::state::KernelFlows;

//! Connections of containers that are the kernel's: which there are, and which ports look for them.

mod former;
mod learned;
mod lookup;

pub(crate) use self::former::Former;

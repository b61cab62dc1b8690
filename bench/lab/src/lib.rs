//! Nodes and containers made of network namespaces, for tests, demo and benchmark.
//!
//! A [`Lab`] is a private directory under `/run`; everything else lives in it: the files that hold the
//! [`Namespace`]s, a BPF file system of its own, each [`Node`]'s socket, state and logs. Whatever is made here is undone
//! when it is dropped, on a panic's unwinding too; what a killed process could not undo is swept away by the next
//! [`Lab`]. Nothing outside the namespaces made here is touched, and no traffic leaves them.

#![forbid(unsafe_code)]

mod agent;
mod binaries;
mod bpf;
pub mod cni;
mod command;
mod container;
mod conversation;
mod daemon;
mod directory;
mod echo;
mod interrupt;
mod inventory;
mod lab;
pub mod load;
mod machine;
mod measured;
mod namespace;
mod network;
mod node;
mod once_free;
mod patience;
mod sandbox;
mod skip;
mod stepped;
mod terminal;
mod threads;
mod topology;
mod uninterrupted;

pub use agent::Agent;
pub use binaries::Binaries;
pub use command::run;
pub use container::Container;
pub use conversation::{Conversation, Protocol};
pub use daemon::Daemon;
pub use echo::Echo;
pub use interrupt::Interrupt;
pub use inventory::Inventory;
pub use lab::Lab;
pub use machine::Machine;
pub use measured::measured;
pub use namespace::Namespace;
pub use network::{Attachment, Network};
pub use node::Node;
pub use once_free::once_free;
pub use patience::{is_emulated, patience};
pub use sandbox::Sandbox;
pub use skip::{Lacking, skip};
pub use terminal::Terminal;
pub use threads::{Done, Threads};
pub use topology::{BareVeth, Path};
pub use uninterrupted::uninterrupted;

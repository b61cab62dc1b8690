//! Packets of more than 64 KiB (BIG TCP): a veth's ends take them up to what every way out of the node takes, for the kernel cuts
//! what a link is not to be handed.
//!
//! The host's end is enlarged here, the container's by the plugin. Where packets leave the node, and bridges, are enlarged with the first
//! port that has such packets, and stay so until the last port is gone ([`undone`]).

mod applied;
mod sizes;
mod state;
mod undone;
mod ways_out;

pub(crate) use state::PacketSizing;

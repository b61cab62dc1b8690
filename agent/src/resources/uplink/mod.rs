//! Uplinks of bridges: interfaces of the node that are trunk ports of a bridge.

mod admission;
mod applied;
mod missing;
mod observed;
mod relocation;
mod removed;
mod spanning_tree;
mod unnamed;
mod xdp;

pub(crate) use self::missing::MissingUplink;

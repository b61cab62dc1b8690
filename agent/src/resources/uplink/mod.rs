//! Uplinks of bridges: interfaces of the node that are trunk ports of a bridge.

mod applied;
mod missing;
mod observed;
mod relocation;
mod removed;
mod spanning_tree;
mod unnamed;
mod validation;
mod xdp;

pub(crate) use self::missing::MissingUplink;

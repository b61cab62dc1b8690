//! Uplinks of bridges: interfaces of the node that are trunk ports of a bridge.

mod admission;
mod ageing;
mod applied;
mod learned;
mod observed;
mod relocation;
mod removed;
mod spanning_tree;
mod state;
mod xdp;

pub(crate) use self::state::Learning;

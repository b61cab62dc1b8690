//! What containers have carried when they go, where metrics are sums over namespaces or over the node.

mod kept;
mod state;

pub(crate) use kept::both_ways;
pub(crate) use state::KeptDeparted;

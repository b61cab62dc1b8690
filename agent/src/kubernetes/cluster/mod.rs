//! The agent as the cluster's network, at the API server: watches the nodes, keeps what they mean for this one, says that the node's
//! network is there. While the server is away the agent goes on with what it knows.

mod condition;
mod keeper;
mod learned;
mod watcher;

pub use keeper::ClusterNetwork;

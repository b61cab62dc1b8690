//! The agent as the cluster's network, at the API server: watches the nodes, keeps what they mean for this one, says that the node's
//! network is there, and what is wrong with it, as events of the node. While the server is away the agent goes on with what it knows.

mod condition;
mod due;
mod keeper;
mod learned;
mod passing;
mod teller;
mod watcher;

pub use keeper::ClusterNetwork;

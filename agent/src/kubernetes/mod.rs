//! Kubernetes: publishing the uplinks' bandwidth to an API server and keeping it there ([`Publisher`]), preparing the claims that the
//! scheduler makes of it for the node's kubelet ([`NodePlugin`]), and being the cluster's network ([`ClusterNetwork`]). [`Recorder`]
//! writes events of pods for what their users can cure.
//!
//! In: what the books say can be handed out, asked for whenever an event says that it has changed. Out: a `ResourceSlice`
//! of the node, or where the server has none, capacity of the node itself. The server is watched: a kubelet deletes its
//! node's slices when it starts. Whatever the server does (is down, forbids, answers nonsense), the agent waits longer
//! and longer, says so in its status, and serves containers as ever: no ADD has any part in this.

mod allocated;
mod allocation;
mod backoff;
mod books;
mod claim_status;
mod client;
mod cluster;
mod difference;
mod driver;
mod error;
mod event;
mod forgotten;
mod node_capacity;
mod node_name;
mod node_plugin;
mod publisher;
mod recorder;
mod resumed;
mod session;
mod sharing;
mod slice_name;
mod slices;
mod told;

pub use cluster::ClusterNetwork;
pub use node_plugin::NodePlugin;
pub use publisher::Publisher;
pub use recorder::Recorder;

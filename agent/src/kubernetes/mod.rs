//! Kubernetes: publishing the uplinks' bandwidth to an API server and keeping it there ([`Publisher`]), preparing the claims that the
//! scheduler makes of it for the node's kubelet ([`NodePlugin`]), and being the cluster's network ([`ClusterNetwork`]). [`Recorder`]
//! writes events of pods for what their users can cure.
//!
//! In: what the books say can be handed out, asked for whenever an event says that it has changed. Out: a `ResourceSlice`
//! of the node, or where the server has none, capacity of the node itself. The server is watched: a kubelet deletes its
//! node's slices when it starts. Whatever the server does (is down, forbids, answers nonsense), the agent waits longer
//! and longer, says so in its status, and serves containers as ever: no ADD has any part in this.

mod node_name;

#[cfg(feature = "kubernetes")]
mod allocated;
#[cfg(feature = "kubernetes")]
mod allocation;
#[cfg(feature = "kubernetes")]
mod backoff;
#[cfg(feature = "kubernetes")]
mod books;
#[cfg(feature = "kubernetes")]
mod claim_status;
#[cfg(feature = "kubernetes")]
mod client;
#[cfg(feature = "kubernetes")]
mod cluster;
#[cfg(feature = "kubernetes")]
mod difference;
#[cfg(feature = "kubernetes")]
mod driver;
#[cfg(feature = "kubernetes")]
mod error;
#[cfg(feature = "kubernetes")]
mod node_capacity;
#[cfg(feature = "kubernetes")]
mod node_plugin;
#[cfg(feature = "kubernetes")]
mod pod_event;
#[cfg(feature = "kubernetes")]
mod publisher;
#[cfg(feature = "kubernetes")]
mod recorder;
#[cfg(feature = "kubernetes")]
mod resumed;
mod session;
#[cfg(feature = "kubernetes")]
mod sharing;
#[cfg(feature = "kubernetes")]
mod slice_name;
#[cfg(feature = "kubernetes")]
mod slices;
#[cfg(feature = "kubernetes")]
mod told;

pub use node_name::node_name;

#[cfg(feature = "kubernetes")]
pub use cluster::ClusterNetwork;
#[cfg(feature = "kubernetes")]
pub use node_plugin::NodePlugin;
#[cfg(feature = "kubernetes")]
pub use publisher::Publisher;
#[cfg(feature = "kubernetes")]
pub use recorder::Recorder;

//! What the agent keeps on the node, one folder a resource.
//!
//! What is desired is in `registry`. Each resource compares it with what is there and makes it so ([`reconcile::Resource`]), in
//! `observed` and `applied` where that is long; `removed` is how it goes. Start, netlink's events, each second's look and requests
//! all come to the same functions.

mod big_tcp;
pub(crate) mod bridge;
mod capacity;
pub(crate) mod change;
pub(crate) mod claim;
pub(crate) mod clock;
mod collision;
pub(crate) mod connection;
mod container_end;
pub(crate) mod departed;
mod desired;
mod difference;
pub(crate) mod events;
pub(crate) mod external_rule;
mod failures;
mod finding;
mod follow;
mod gravity;
pub(crate) mod guarantee;
pub(crate) mod heeding;
pub(crate) mod host_port;
mod kernel_flow;
pub(crate) mod lease;
mod link_deletion;
pub(crate) mod masquerade;
pub(crate) mod node;
#[cfg(feature = "kubernetes")]
pub(crate) mod notice;
pub(crate) mod pins;
pub(crate) mod port;
pub(crate) mod reconcile;
pub(crate) mod refusal;
pub(crate) mod repairs;
pub(crate) mod reverse_path;
mod rules;
pub(crate) mod station;
pub(crate) mod tracked;
pub(crate) mod trunk;
pub(crate) mod unattached;
pub(crate) mod uplink;
pub(crate) mod validation;
pub(crate) mod vlan_gateway;
pub(crate) mod watching;

pub(crate) use self::failures::Failures;
pub(crate) use self::finding::Finding;
pub(crate) use self::gravity::Gravity;
pub(crate) use self::link_deletion::delete_in_background;
pub(crate) use self::node::Node;
pub use self::refusal::Refusal;

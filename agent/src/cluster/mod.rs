//! The agent as the cluster's network: what of it needs no API server.
//!
//! In: the nodes, with their pods' prefixes and their addresses ([`Members`]). Out: what is to be done on this node ([`Plan`]): the
//! network configuration ([`conflist`]), ways to the other nodes' pods ([`ways`]: routes, and a VXLAN device), destinations that are not
//! masqueraded. Pods that run are never touched: what goes wrong is a warning.

#[cfg(feature = "kubernetes")]
mod believable;
#[cfg(feature = "kubernetes")]
pub(crate) mod conflist;
#[cfg(feature = "kubernetes")]
mod fault;
#[cfg(feature = "kubernetes")]
pub(crate) mod gateways;
#[cfg(feature = "kubernetes")]
mod hop;
#[cfg(feature = "kubernetes")]
pub(crate) mod known;
pub(crate) mod mark;
#[cfg(feature = "kubernetes")]
mod members;
#[cfg(feature = "kubernetes")]
mod mtu;
#[cfg(feature = "kubernetes")]
mod plan;
#[cfg(all(test, feature = "kubernetes"))]
mod plan_tests;
pub(crate) mod removal;
#[cfg(feature = "kubernetes")]
mod routes;
#[cfg(feature = "kubernetes")]
mod tunnel;
#[cfg(feature = "kubernetes")]
pub(crate) mod ways;

#[cfg(feature = "kubernetes")]
pub(crate) use fault::{Fault, Reason};
#[cfg(feature = "kubernetes")]
pub(crate) use members::{Member, Members};
#[cfg(feature = "kubernetes")]
pub(crate) use mtu::PodsMtu;
#[cfg(feature = "kubernetes")]
pub(crate) use plan::Plan;

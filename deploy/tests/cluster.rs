//! What a cluster gets: the image's archive, the chart, the manifests that are rendered from it, and the policy in them.
//!
//! The image's tests need `cargo xtask build`, the chart's Helm, which `cargo xtask setup` fetches; the others read the manifests that are
//! kept. Nothing here needs root or a cluster.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

#[path = "cluster/archive.rs"]
mod archive;
#[path = "cluster/foreign.rs"]
mod foreign;
#[path = "cluster/kept.rs"]
mod kept;
#[path = "cluster/monitoring.rs"]
mod monitoring;
#[path = "cluster/network.rs"]
mod network;
#[path = "cluster/policy.rs"]
mod policy;
#[path = "cluster/rendered.rs"]
mod rendered;
#[path = "cluster/types.rs"]
mod types;
#[path = "cluster/values.rs"]
mod values;

//! The agent as the cluster's network: nodes that are namespaces on one link, and an API server that each of them reaches.
//!
//! Needs root. Every test has its own namespaces, BPF file system and directories, and takes them away again.
#![cfg(feature = "kubernetes")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

#[path = "cluster/away.rs"]
mod away;
#[path = "cluster/bad_input.rs"]
mod bad_input;
#[path = "cluster/nodes.rs"]
mod nodes;
#[path = "cluster/pods.rs"]
mod pods;
#[path = "services/rules.rs"]
mod rules;
#[path = "cluster/server.rs"]
mod server;
#[path = "cluster/services.rs"]
mod services;
#[path = "cluster/tunnel.rs"]
mod tunnel;
#[path = "cluster/tunnel_bad_input.rs"]
mod tunnel_bad_input;
#[path = "cluster/tunnel_kept.rs"]
mod tunnel_kept;
#[path = "cluster/updated.rs"]
mod updated;
#[path = "cluster/watched.rs"]
mod watched;
#[path = "cluster/world.rs"]
mod world;

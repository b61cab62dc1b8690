//! Same-node Services: what the node translates between two of its containers stays with the kernel, whose conntrack has
//! to undo it, while everything else between the same containers is fast. Needs root and `cargo xtask build`.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

#[path = "services/cluster.rs"]
mod cluster;
#[path = "services/flood.rs"]
mod flood;
#[path = "services/hooks.rs"]
mod hooks;
#[path = "services/one_path_for_life.rs"]
mod one_path_for_life;
#[path = "services/recurring.rs"]
mod recurring;
#[path = "services/rules.rs"]
mod rules;
#[path = "services/virtual_address.rs"]
mod virtual_address;

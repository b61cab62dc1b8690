//! The built-in IPAM against its promise: host-local's answers and files, and what host-local leaves undone.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod behaviour;
mod concurrency;
mod differential;
mod exchange;
mod inspection;
mod model;
mod network;
mod program;
mod reference;

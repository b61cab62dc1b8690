//! CNI as a service, end to end: an agent's process, its gRPC socket, and containers that are attached by it. Needs root, and `shunt`
//! and `shunt-agent`.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests, and their figures")]

#[path = "cni_service/bad_input.rs"]
mod bad_input;
#[path = "cni_service/cancelled.rs"]
mod cancelled;
#[path = "cni_service/client.rs"]
mod client;
#[path = "cni_service/clients.rs"]
mod clients;
#[path = "cni_service/draft.rs"]
mod draft;
#[path = "cni_service/figures.rs"]
mod figures;
#[path = "cni_service/foreign.rs"]
mod foreign;
#[path = "cni_service/fuzzed.rs"]
mod fuzzed;
#[path = "cni_service/idle.rs"]
mod idle;
#[path = "cni_service/leaving.rs"]
mod leaving;
#[path = "cni_service/lifecycle.rs"]
mod lifecycle;
#[path = "cni_service/listed.rs"]
mod listed;
#[path = "cni_service/many.rs"]
mod many;
#[path = "cni_service/networks.rs"]
mod networks;
#[path = "cni_service/restart.rs"]
mod restart;
#[path = "cni_service/rights.rs"]
mod rights;
#[path = "cni_service/standard.rs"]
mod standard;
#[path = "cni_service/traced.rs"]
mod traced;
#[path = "cni_service/via_agent.rs"]
mod via_agent;
#[path = "cni_service/waiting.rs"]
mod waiting;
#[path = "cni_service/watched.rs"]
mod watched;
#[path = "cni_service/world.rs"]
mod world;

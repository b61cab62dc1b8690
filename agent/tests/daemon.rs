//! The agent's process, asked through its socket: attaching, adopting, following the kernel, and bad company.
//!
//! Needs root. Every test has its own namespaces, BPF file system and directories, and takes them away again.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test, and its figures with --nocapture"
)]

#[path = "daemon/address.rs"]
mod address;
#[path = "daemon/admission.rs"]
mod admission;
#[path = "daemon/adopt.rs"]
mod adopt;
#[cfg(feature = "kubernetes")]
#[path = "daemon/api_answer.rs"]
mod api_answer;
#[path = "daemon/api_claims.rs"]
mod api_claims;
#[cfg(feature = "kubernetes")]
#[path = "daemon/api_rules.rs"]
mod api_rules;
#[cfg(feature = "kubernetes")]
#[path = "daemon/api_server.rs"]
mod api_server;
#[cfg(feature = "kubernetes")]
#[path = "daemon/api_store.rs"]
mod api_store;
#[path = "daemon/attach.rs"]
mod attach;
#[path = "daemon/beside.rs"]
mod beside;
#[path = "daemon/capacity.rs"]
mod capacity;
#[path = "daemon/churn.rs"]
mod churn;
#[cfg(feature = "kubernetes")]
#[path = "daemon/claim_figures.rs"]
mod claim_figures;
#[path = "daemon/claim_orders.rs"]
mod claim_orders;
#[cfg(feature = "kubernetes")]
#[path = "daemon/claim_status.rs"]
mod claim_status;
#[cfg(feature = "kubernetes")]
#[path = "daemon/claimed.rs"]
mod claimed;
#[cfg(feature = "kubernetes")]
#[path = "daemon/claims.rs"]
mod claims;
#[cfg(feature = "kubernetes")]
#[path = "daemon/cluster.rs"]
mod cluster;
#[path = "daemon/config.rs"]
mod config;
#[path = "daemon/crowded.rs"]
mod crowded;
#[path = "daemon/damages.rs"]
mod damages;
#[path = "daemon/events.rs"]
mod events;
#[path = "daemon/exclusive.rs"]
mod exclusive;
#[cfg(feature = "kubernetes")]
#[path = "../kubelet/tests/served/fake_kubelet.rs"]
mod fake_kubelet;
#[path = "daemon/follow.rs"]
mod follow;
#[cfg(feature = "kubernetes")]
#[path = "daemon/forbidden.rs"]
mod forbidden;
#[path = "daemon/full_uplink.rs"]
mod full_uplink;
#[path = "daemon/grace_periods.rs"]
mod grace_periods;
#[path = "daemon/group.rs"]
mod group;
#[path = "daemon/guarantee.rs"]
mod guarantee;
#[path = "daemon/health.rs"]
mod health;
#[path = "daemon/kernel.rs"]
mod kernel;
#[path = "daemon/leases.rs"]
mod leases;
#[path = "daemon/log.rs"]
mod log;
#[path = "daemon/metrics.rs"]
mod metrics;
#[cfg(feature = "kubernetes")]
#[path = "daemon/one_book.rs"]
mod one_book;
#[cfg(feature = "kubernetes")]
#[path = "daemon/pod_events.rs"]
mod pod_events;
#[path = "daemon/printed.rs"]
mod printed;
#[path = "daemon/privileges.rs"]
mod privileges;
#[cfg(feature = "kubernetes")]
#[path = "daemon/publishing.rs"]
mod publishing;
#[path = "daemon/reachable.rs"]
mod reachable;
#[path = "daemon/renamed.rs"]
mod renamed;
#[path = "daemon/repair.rs"]
mod repair;
#[path = "daemon/rig.rs"]
mod rig;
#[path = "daemon/service.rs"]
mod service;
#[path = "daemon/socket.rs"]
mod socket;
#[path = "daemon/start.rs"]
mod start;
#[path = "daemon/state.rs"]
mod state;
#[path = "daemon/supervised.rs"]
mod supervised;
#[path = "daemon/traffic.rs"]
mod traffic;
#[path = "daemon/upgrade.rs"]
mod upgrade;

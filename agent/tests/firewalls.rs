//! The oracle of others' rules: the same rule sets and the same traffic on a node with shunt, which heeds them, and on one with the reference's bridge.
//! What the kernel's bridge lets through, shunt lets through, and nothing else: of a flow's first packets, of those that are fast, and after rules have changed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "tests, and their figures")]

#[path = "firewalls/beside_services.rs"]
mod beside_services;
#[allow(dead_code, reason = "other suites use more of it")]
#[path = "netns/entries.rs"]
mod entries;
#[path = "firewalls/flows.rs"]
mod flows;
#[path = "firewalls/full_tracking.rs"]
mod full_tracking;
#[path = "firewalls/host_ports.rs"]
mod host_ports;
#[allow(dead_code, reason = "other suites use more of it")]
#[path = "services/rules.rs"]
mod kube_proxy;
#[path = "firewalls/linked.rs"]
mod linked;
#[path = "firewalls/narrow.rs"]
mod narrow;
#[path = "firewalls/opening.rs"]
mod opening;
#[path = "firewalls/packets.rs"]
mod packets;
#[path = "firewalls/questions.rs"]
mod questions;
#[path = "firewalls/queue.rs"]
mod queue;
#[path = "firewalls/rules.rs"]
mod rules;
#[path = "firewalls/same.rs"]
mod same;
#[path = "firewalls/sctp.rs"]
mod sctp;
#[path = "firewalls/sides.rs"]
mod sides;
#[path = "firewalls/tellers.rs"]
mod tellers;
#[path = "firewalls/trial.rs"]
mod trial;
#[allow(dead_code, reason = "other suites use more of it")]
#[path = "netns/uncut.rs"]
mod uncut;
#[allow(dead_code, reason = "other suites use more of it")]
#[path = "netns/wire.rs"]
mod wire;

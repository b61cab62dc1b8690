//! Host ports, end to end: a node with containers, and hosts outside that know the node's addresses only. Needs root and
//! `cargo xtask build`.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

#[path = "portmap/asked_by_node.rs"]
mod asked_by_node;
#[path = "portmap/association.rs"]
mod association;
#[path = "portmap/bad_input.rs"]
mod bad_input;
#[path = "portmap/beside_reference.rs"]
mod beside_reference;
#[path = "portmap/chained.rs"]
mod chained;
#[path = "portmap/connected_peers.rs"]
mod connected_peers;
#[path = "netns/datagram.rs"]
mod datagram;
#[path = "portmap/errors.rs"]
mod errors;
#[path = "portmap/explained.rs"]
mod explained;
#[path = "portmap/follows.rs"]
mod follows;
#[path = "portmap/forged.rs"]
mod forged;
#[path = "portmap/fragments.rs"]
mod fragments;
#[path = "portmap/from_node.rs"]
mod from_node;
#[path = "portmap/guarded.rs"]
mod guarded;
#[path = "services/hooks.rs"]
mod hooks;
#[path = "portmap/imposters.rs"]
mod imposters;
#[path = "portmap/inside.rs"]
mod inside;
#[path = "portmap/lifetime.rs"]
mod lifetime;
#[path = "portmap/local_routes.rs"]
mod local_routes;
#[path = "portmap/many.rs"]
mod many;
#[path = "portmap/mapped_addresses.rs"]
mod mapped_addresses;
#[path = "portmap/neighbors.rs"]
mod neighbors;
#[path = "portmap/next_owner.rs"]
mod next_owner;
#[path = "portmap/outside.rs"]
mod outside;
#[path = "portmap/ranges.rs"]
mod ranges;
#[path = "portmap/reference.rs"]
mod reference;
#[path = "portmap/reports.rs"]
mod reports;
#[path = "portmap/sctp.rs"]
mod sctp;
#[path = "portmap/sctp_from_node.rs"]
mod sctp_from_node;
#[path = "portmap/sctp_reference.rs"]
mod sctp_reference;
#[path = "portmap/several_ports.rs"]
mod several_ports;
#[path = "portmap/shares.rs"]
mod shares;
#[path = "portmap/stage.rs"]
mod stage;
#[path = "portmap/stale_sockets.rs"]
mod stale_sockets;
#[path = "portmap/strays.rs"]
mod strays;
#[path = "portmap/too_big.rs"]
mod too_big;
#[path = "portmap/tunnel.rs"]
mod tunnel;
#[path = "portmap/tunnelled.rs"]
mod tunnelled;
#[path = "netns/uncut.rs"]
mod uncut;
#[path = "portmap/unmapped.rs"]
mod unmapped;
#[path = "portmap/updated.rs"]
mod updated;
#[path = "portmap/way_out.rs"]
mod way_out;
#[path = "portmap/who.rs"]
mod who;
#[allow(dead_code, reason = "other suites use more of it")]
#[path = "netns/wire.rs"]
mod wire;

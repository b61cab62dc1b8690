//! VLAN interfaces: on a master of the node's, and on an interface that another plugin of the chain made, with tags put on
//! by the agent's programs or by the kernel's own VLAN devices. Needs root and `cargo xtask build`.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

#[path = "interfaces/bad_input.rs"]
mod bad_input;
#[path = "interfaces/chain.rs"]
mod chain;
#[path = "interfaces/dhcp.rs"]
mod dhcp;
#[path = "netns/dhcp_service.rs"]
mod dhcp_service;
#[path = "interfaces/lifetime.rs"]
mod lifetime;
#[path = "interfaces/master.rs"]
mod master;
#[path = "interfaces/stage.rs"]
mod stage;
#[allow(dead_code, reason = "not every helper is wanted here")]
#[path = "netns/wire.rs"]
mod wire;

//! Making an attachment: a plan, its steps in order (`procedure.rs`), and the way back.
//!
//! No container may send before programs are attached to its port: the host's end of the veth is down until the agent, which is asked last,
//! sets it up behind its programs.

mod adopt;
mod alias;
mod bridge;
mod bridge_port;
mod container;
mod context;
mod error;
mod journal;
mod node;
mod plan;
mod port;
mod procedure;
mod veth;

pub(crate) use adopt::Adopted;
pub(crate) use alias::{Alias, BRIDGE as BRIDGE_MARK};
pub(crate) use bridge::{Found, MadeBridge, complete, ensure_bridge, is_idle, ports};
pub(crate) use bridge_port::{add_port, add_port_and_set_up, holds, port_flags, restrict};
pub(crate) use container::configure;
pub(crate) use context::Context;
pub(crate) use error::AttachError;
pub(crate) use journal::{Journal, Step};
pub(crate) use node::{Node, Sandbox};
pub(crate) use plan::{BridgePlan, Plan, gateways_of, inherits_from, key, restrictions, vlan_gateway};
pub(crate) use port::{interface, join_bridge, port_of, wait_for_addresses, wait_for_bridge};
pub(crate) use procedure::{Attachment, make_attachment};
pub(crate) use veth::{disable_ipv6, make_veth};

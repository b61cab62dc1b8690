//! Making an attachment: a plan, its steps in order (`procedure.rs`), and the way back.
//!
//! No container may send before programs are attached to its port: the host's end of the veth is down until the agent, which is asked last,
//! sets it up behind its programs.

mod adopt;
mod alias;
mod bridge;
mod container;
mod enlist;
mod error;
mod journal;
mod node;
mod plan;
mod port;
mod procedure;
mod site;
mod veth;

pub(crate) use adopt::Adopted;
pub(crate) use alias::{Alias, BRIDGE as BRIDGE_MARK};
pub(crate) use bridge::{Found, MadeBridge, complete, ensure_bridge, is_idle, ports};
pub(crate) use container::configure;
pub(crate) use enlist::{enlist, enrol, holds, port_flags, restrict};
pub(crate) use error::AttachError;
pub(crate) use journal::{Journal, Step};
pub(crate) use node::{Node, Sandbox};
pub(crate) use plan::{BridgePlan, Plan, gateways_of, heir_of, key, restrictions, vlan_gateway};
pub(crate) use port::{interface, join_bridge, port_of, wait_for_addresses, wait_for_bridge};
pub(crate) use procedure::{Joint, carry_out};
pub(crate) use site::Site;
pub(crate) use veth::{make_veth, silence};

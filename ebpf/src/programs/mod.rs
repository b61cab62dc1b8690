//! The kernel programs, one file each: the whole pipeline of a program, in its order. Read [`from_container`] first.
//!
//! Programs are named from the packet's point of view, since "ingress" and "egress" change sides on a host veth.
//! [`order`] is the table of their stages.

mod fit;
pub mod from_container;
pub mod from_host;
pub mod from_mapped;
pub mod from_member;
pub mod from_nic;
pub mod from_trunk;
pub mod from_uplink;
pub mod from_vlan;
pub mod from_wire;
pub mod guard_from;
pub mod guard_to;
pub mod moved;
mod next;
pub mod order;
pub mod own_return;
mod plan;
pub mod to_container;
pub mod to_member;
pub mod to_trunk;
pub mod to_uplink;
pub mod to_wire;
pub mod tracked;

pub use next::Next;
pub use plan::{BeginPlan, DnatPlan, IcmpErrorPlan};

//! The stages of the pipelines, one decision a file. A stage is a pure function over a packet and the maps: it lets the packet on,
//! or says how its way ends ([`crate::Stop`]). Only `deliver`, `retag` and `flood` edit, and they come last.

pub mod accept;
pub mod announce;
pub mod classify;
pub mod count;
pub mod deliver;
pub mod find;
pub mod flood;
pub mod flow_affinity;
pub mod guard;
pub mod incoming;
pub mod isolate;
pub mod kernel_share;
pub mod learn;
pub mod mac_filter;
pub mod neighbor_proxy;
pub mod origin_check;
pub mod parse;
pub mod police;
pub mod port;
pub mod read_flow;
pub mod retag;
pub mod share;
pub mod source_guard;
pub mod suppress;
pub mod track_kernel_flow;

//! The stages of the pipelines, one decision a file. A stage is a pure function: it lets a packet on, or says how it ends.

pub mod classify;
pub mod count;
pub mod deliver;
pub mod find;
pub mod flood;
pub mod flow_affinity;
pub mod guard;
pub mod isolate;
pub mod learn;
pub mod mac_filter;
pub mod neighbor_proxy;
pub mod origin_check;
pub mod police;
pub mod port;
pub mod read_flow;
pub mod retag;
pub mod source_guard;
pub mod track_kernel_flow;

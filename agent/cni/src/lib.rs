//! CNI as a service: its messages, CNI's errors in gRPC's status, and the server.
//!
//! The messages are generated from `proto/shunt/cni/v1/cni.proto`, which documents them. An error of CNI travels as the one detail
//! of a `google.rpc.Status` ([`Failure`]), so that a client of any language has its code.
//!
//! A [`Server`] runs configuration lists as libcni does. What shunt does is done by the procedure of the plugin itself, in this process, each
//! call on a thread of its own; other plugins are run as programs. An Add that is cancelled, or late, is undone.

#![forbid(unsafe_code)]

mod add;
mod answer;
mod arriving;
mod asked;
mod cache;
mod call_log;
mod caller;
mod calls;
mod chain;
pub mod client;
mod deadline;
mod draft;
mod event_log;
mod failure;
mod files;
mod gate;
mod inbox;
mod invoke;
mod list;
mod locks;
mod netns_id;
mod networks;
mod plugin;
pub mod proto;
mod server;
mod services;
mod settings;
mod shares;
mod subject;
mod trace;
pub mod understood;
mod watching;
mod work;

pub use failure::{DetailError, Failure};
pub use plugin::THREAD;
pub use server::Server;
pub use services::DescriptorError;
pub use settings::Settings;

/// The descriptors of all messages and services with their documentation: an encoded `google.protobuf.FileDescriptorSet`.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/cni.descriptors"));

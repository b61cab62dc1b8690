//! CNI as a service: its messages, and CNI's errors in gRPC's status.
//!
//! The messages are generated from `proto/shunt/cni/v1/cni.proto`, which documents them. An error of CNI travels as the one detail
//! of a `google.rpc.Status` ([`Failure`]), so that a client of any language has its code.

#![forbid(unsafe_code)]

mod failure;
pub mod proto;

pub use failure::{DetailError, Failure};

/// The descriptors of all messages and services with their documentation: an encoded `google.protobuf.FileDescriptorSet`.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/cni.descriptors"));

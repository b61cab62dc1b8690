//! The messages of `Invoke`, as `shunt.cni.v1` has them: the service's crate depends on this one, and a test there compares the two.

use prost::{Message, Oneof};

/// Asks for one plugin's call.
#[derive(Clone, PartialEq, Message)]
pub struct InvokeRequest {
    /// The name under which the plugin was called.
    #[prost(string, tag = "1")]
    pub plugin: String,
    /// `CNI_COMMAND`.
    #[prost(string, tag = "2")]
    pub command: String,
    /// `CNI_CONTAINERID`.
    #[prost(string, tag = "3")]
    pub container_id: String,
    /// `CNI_IFNAME`.
    #[prost(string, tag = "4")]
    pub ifname: String,
    /// `CNI_NETNS`.
    #[prost(string, tag = "5")]
    pub netns: String,
    /// `CNI_ARGS`.
    #[prost(string, tag = "6")]
    pub args: String,
    /// `CNI_NETNS_OVERRIDE`.
    #[prost(bool, tag = "7")]
    pub netns_override: bool,
    /// The name of the runtime.
    #[prost(string, tag = "8")]
    pub runtime: String,
    /// The configuration.
    #[prost(bytes = "vec", tag = "9")]
    pub config: Vec<u8>,
}

/// How it ended.
#[derive(Clone, PartialEq, Message)]
pub struct InvokeResponse {
    /// One of them is there.
    #[prost(oneof = "Outcome", tags = "1, 2, 3")]
    pub outcome: Option<Outcome>,
}

/// How a call ended.
#[derive(Clone, PartialEq, Oneof)]
pub enum Outcome {
    /// What the plugin has printed.
    #[prost(bytes = "vec", tag = "1")]
    Done(Vec<u8>),
    /// The error that it has printed.
    #[prost(bytes = "vec", tag = "2")]
    Failed(Vec<u8>),
    /// The service has begun nothing.
    #[prost(message, tag = "3")]
    Refused(Refusal),
}

/// `shunt.cni.v1.Error`.
#[derive(Clone, PartialEq, Message)]
pub struct Refusal {
    /// The code.
    #[prost(uint32, tag = "1")]
    pub code: u32,
    /// Why.
    #[prost(string, tag = "2")]
    pub msg: String,
    /// More of it.
    #[prost(string, tag = "3")]
    pub details: String,
}

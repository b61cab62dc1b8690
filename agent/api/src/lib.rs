//! What anyone may say to the agent over its Unix socket, and how it is put on the wire.
//!
//! A message is a big-endian `u32` length followed by that many bytes of JSON ([`frame`]). A connection carries one
//! request and one reply at a time, any number of times; after [`Request::Subscribe`] only events follow, and behind the reply to a last request
//! nothing. An attach may come in two pieces ([`Request::Announce`]). Requests and replies travel in an [`Envelope`] that names
//! the protocol's [`VERSION`], so that an old plugin and a new agent part with a clear error and not with a guess.

#![forbid(unsafe_code)]

mod address;
mod attachment;
mod bandwidth;
mod capacity;
mod client;
mod event;
mod explain;
pub mod frame;
mod mapping;
mod message;
mod report;
mod restriction;
mod service;
mod vlan;

pub use address::{is_listened_to, processor_of, this_processor};
pub use attachment::{AttachmentKey, BridgePort, Interface, Place};
pub use bandwidth::{Bandwidth, Rate};
pub use capacity::{Allocation, CapacityReport, PoolReport, SlotsReport, UplinkReport};
pub use client::{Client, ClientError, DEFAULT_SOCKET, SOCKET_ENV, Unread, socket_path};
pub use event::{Event, EventKind};
pub use explain::{Explanation, Kind, MAX_FRAME, Origin, Question, QuestionError, StageReport};
pub use mapping::{PortMapping, Protocol};
pub use message::{
    AgentError, Attached, Collected, Detached, Envelope, EnvelopeError, ErrorKind, FarEnd, Reply, Request,
    VERSION,
};
pub use report::{
    AgentStatus, AuditReport, BridgeUplinkReport, DropReport, FdbEntry, FdbKind, FlowEnds, FlowProtocol,
    FlowReport, Limits, MappingReport, PortReport, ProgramMode, ProgramReport, RelocationReport, Traffic,
    VlanGatewayReport, VlanReport, Volume,
};
pub use restriction::{IngressPolicy, Restrictions, StormControl, Vlans};
pub use service::{BridgeUplink, Service, VlanGateway};
pub use vlan::{VlanInterface, interface_name, is_interface_of};

//! What anyone may say to the agent over its Unix socket, and how it is put on the wire.
//!
//! A message is a big-endian `u32` length followed by that many bytes of JSON ([`frame`]). A connection carries one
//! request and one reply at a time, any number of times; after [`Request::Subscribe`] only events follow. Requests and replies travel
//! in an [`Envelope`] that names the protocol's [`VERSION`]; the agent also serves the [`PREVIOUS_VERSION`].

#![forbid(unsafe_code)]

mod attachment;
mod attachment_key;
mod bandwidth;
mod big_tcp;
mod capacity;
mod client;
pub mod deadline;
mod envelope;
mod event;
mod explain;
pub mod fnv;
pub mod frame;
mod handed_over;
mod mapping;
mod message;
mod parts;
mod pod;
mod report;
mod restriction;
mod service;
mod trace;
mod vlan;
mod watch;

pub use attachment::{BridgePort, Interface};
pub use attachment_key::AttachmentKey;
pub use bandwidth::{Bandwidth, Rate};
pub use big_tcp::{BigTcp, LARGEST_PACKETS, Packets, USUAL_PACKETS};
pub use capacity::{Allocation, CapacityReport, CarriedReport, PoolReport, SlotsReport, UplinkReport};
pub use client::{Client, ClientError, DEFAULT_SOCKET, SOCKET_ENV, connect, socket_path};
pub use envelope::{Envelope, EnvelopeError, PREVIOUS_VERSION, VERSION};
pub use event::{Event, EventKind};
pub use explain::{Explanation, Kind, MAX_FRAME, Origin, Question, QuestionError, StageReport};
pub use handed_over::HandedOver;
pub use mapping::{PortMapping, Protocol, find_overlap};
pub use message::{AgentError, Attached, Collected, Detached, ErrorKind, Reply, Request};
pub use parts::PART;
pub use pod::{Claimed, Pod};
pub use report::{
    AccountReport, AgentStatus, AuditReport, BridgeUplinkReport, ConfigKey, ConfigOrigin, ConfigReport,
    Counted, DropCount, DropReport, FdbEntry, FdbKind, FilterReport, FlowEnds, FlowProtocol, FlowReport,
    GracePeriodReport, Limits, MappingReport, PortReport, ProgramMode, ProgramReport, RelocationReport,
    Traffic, VlanGatewayReport, VlanReport, Volume,
};
pub use restriction::{IngressPolicy, Restrictions, StormControl, Vlans};
pub use service::{BRIDGE_MARK, BridgeUplink, FilterMode, Service, VlanGateway};
pub use trace::{NoTraceParent, TraceParent};
pub use vlan::{VlanInterface, interface_name, is_interface_of};
pub use watch::{PacketReport, WatchReport, WatchRequest};

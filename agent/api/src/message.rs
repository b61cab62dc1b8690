//! Requests and replies.

use serde::{Deserialize, Serialize};

use crate::big_tcp::Packets;
use crate::capacity::CapacityReport;
use crate::event::Event;
use crate::explain::{Explanation, Origin, Question};
use crate::report::{
    AccountReport, AgentStatus, AuditReport, ConfigReport, DropReport, FdbEntry, FlowReport, MappingReport,
    PortReport, ProgramReport,
};
use crate::watch::{WatchReport, WatchRequest};
use crate::{AttachmentKey, Bandwidth, BridgePort, Interface, PortMapping};

/// What may be asked.
///
/// The verb comes first and what it is about by itself: so it is read as it comes, and need not be kept until it is known what it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verb", content = "about", rename_all = "kebab-case")]
pub enum Request {
    /// Put programs and map entries behind a port. Fails if the key is attached already with other facts. The reply means done.
    Attach {
        /// The port.
        port: BridgePort,
        /// Also set the host's end up, once its programs are in force. Where `port.peer_up` says that the container's end is up, the reply
        /// means that both ends are operational.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        set_up: bool,
    },
    /// The same of a port whose container is at work: the flows that the kernel has of it stay with the kernel.
    Adopt {
        /// The port.
        port: BridgePort,
    },
    /// Forget an attachment. Succeeds when there is none.
    Detach {
        /// Which.
        key: AttachmentKey,
        /// The host's end, for the agent to delete beside its own work: the kernel keeps whoever deletes a link waiting
        /// for a grace period long after the link is gone. The asker looks whether it is gone.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        link: Option<Interface>,
    },
    /// Give an attachment the limits and host ports of `port`, under its traffic, or put it where there is none. Fails if it
    /// is attached with other facts besides.
    Update {
        /// The port.
        port: BridgePort,
        /// The host ports that are there stay, whatever `port` says: a plugin further down the chain looks after them.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        keeps_mappings: bool,
    },
    /// Give an attachment the addresses of `port` in place, under its traffic, and what follows from them: gateways, masquerading, host
    /// ports, where they are leased. Fails if there is no attachment, or if it is attached with other facts besides.
    Address {
        /// The port.
        port: BridgePort,
    },
    /// Make an attachment what `port` says, whatever of it is there or other than it says. A restricted port is at no moment without its
    /// programs. Limits and host ports stay where `port` has none.
    Restore {
        /// The port.
        port: BridgePort,
    },
    /// Compare an attachment with the kernel: programs attached, entries in the maps, link present.
    Check {
        /// The port as the plugin believes it to be.
        port: BridgePort,
    },
    /// Forget every attachment of `network` that is not in `valid`. Other networks are never touched.
    Collect {
        /// The network's name.
        network: String,
        /// The attachments that are to stay.
        valid: Vec<AttachmentKey>,
    },
    /// Give an attachment other limits, under its traffic. The default takes them away.
    Limit {
        /// Which.
        key: AttachmentKey,
        /// The limits from now on.
        bandwidth: Bandwidth,
    },
    /// Compare an attachment's limits, and nothing else of it, with what is in force.
    CheckLimit {
        /// Which.
        key: AttachmentKey,
        /// The limits as the asker believes them to be.
        bandwidth: Bandwidth,
    },
    /// Give an attachment other host ports, under its traffic. None takes them away.
    Map {
        /// Which.
        key: AttachmentKey,
        /// The host ports from now on.
        mappings: Vec<PortMapping>,
    },
    /// Give every attachment of a network that is masqueraded other destinations that see its own address. None takes them away.
    Exempt {
        /// The network's name.
        network: String,
        /// [`BridgePort::unmasqueraded`] from now on.
        destinations: Vec<String>,
    },
    /// Compare an attachment's host ports, and nothing else of it, with what is in force.
    CheckMap {
        /// Which.
        key: AttachmentKey,
        /// The host ports as the asker believes them to be.
        mappings: Vec<PortMapping>,
    },
    /// [`AgentStatus`].
    Status,
    /// A [`PortReport`] per attachment.
    Ports,
    /// A [`FdbEntry`] per known station.
    Fdb,
    /// A [`FlowReport`] per translated connection.
    Flows,
    /// A [`MappingReport`] per host port.
    Mappings,
    /// A [`DropReport`] per port and reason.
    Drops,
    /// An [`AccountReport`] per attachment.
    Account,
    /// [`CapacityReport`].
    Capacity,
    /// What would become of a packet: [`Explanation`]. Nothing is sent and nothing is changed.
    Explain {
        /// Where it begins.
        from: Origin,
        /// The packet.
        packet: Question,
    },
    /// Compare everything with the kernel: [`AuditReport`].
    Audit,
    /// Every configured value and where it comes from: [`ConfigReport`].
    Config,
    /// From now on every [`Event`], until the connection ends. It carries no other request.
    Subscribe,
    /// What becomes of packets, as [`WatchReport`]s until the connection ends. It carries no other request. Packets are others' data, and
    /// watching replaces the programs: for root only.
    Watch(WatchRequest),
}

impl Request {
    /// Its name on the wire.
    pub const fn verb(&self) -> &'static str {
        match self {
            Self::Attach { .. } => "attach",
            Self::Adopt { .. } => "adopt",
            Self::Detach { .. } => "detach",
            Self::Update { .. } => "update",
            Self::Address { .. } => "address",
            Self::Restore { .. } => "restore",
            Self::Check { .. } => "check",
            Self::Collect { .. } => "collect",
            Self::Limit { .. } => "limit",
            Self::CheckLimit { .. } => "check-limit",
            Self::Map { .. } => "map",
            Self::Exempt { .. } => "exempt",
            Self::CheckMap { .. } => "check-map",
            Self::Status => "status",
            Self::Ports => "ports",
            Self::Fdb => "fdb",
            Self::Flows => "flows",
            Self::Mappings => "mappings",
            Self::Drops => "drops",
            Self::Account => "account",
            Self::Capacity => "capacity",
            Self::Explain { .. } => "explain",
            Self::Audit => "audit",
            Self::Config => "config",
            Self::Subscribe => "subscribe",
            Self::Watch(_) => "watch",
        }
    }

    /// Whether it only asks.
    pub const fn is_read_only(&self) -> bool {
        match self {
            Self::Attach { .. }
            | Self::Adopt { .. }
            | Self::Detach { .. }
            | Self::Update { .. }
            | Self::Address { .. }
            | Self::Restore { .. }
            | Self::Collect { .. }
            | Self::Limit { .. }
            | Self::Exempt { .. }
            | Self::Map { .. }
            | Self::Watch(_) => false,
            Self::Check { .. }
            | Self::CheckLimit { .. }
            | Self::CheckMap { .. }
            | Self::Status
            | Self::Ports
            | Self::Fdb
            | Self::Flows
            | Self::Mappings
            | Self::Drops
            | Self::Account
            | Self::Capacity
            | Self::Explain { .. }
            | Self::Audit
            | Self::Config
            | Self::Subscribe => true,
        }
    }
}

/// What is answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "reply", content = "body", rename_all = "kebab-case")]
pub enum Reply {
    /// To [`Request::Attach`], [`Request::Adopt`], [`Request::Update`], [`Request::Address`], [`Request::Restore`] and
    /// [`Request::Map`].
    Attached(Attached),
    /// To [`Request::Detach`].
    Detached(Detached),
    /// To [`Request::Check`] and [`Request::CheckLimit`]: everything is as it should be.
    Checked,
    /// To [`Request::Collect`].
    Collected(Collected),
    /// To [`Request::Limit`].
    Limited,
    /// To [`Request::Exempt`].
    Exempted,
    /// To [`Request::Status`].
    Status(AgentStatus),
    /// To [`Request::Ports`].
    Ports(Vec<PortReport>),
    /// To [`Request::Fdb`].
    Fdb(Vec<FdbEntry>),
    /// To [`Request::Flows`].
    Flows(Vec<FlowReport>),
    /// To [`Request::Mappings`].
    Mappings(Vec<MappingReport>),
    /// To [`Request::Drops`].
    Drops(Vec<DropReport>),
    /// To [`Request::Account`].
    Account(Vec<AccountReport>),
    /// To [`Request::Capacity`].
    Capacity(CapacityReport),
    /// To [`Request::Explain`].
    Explained(Explanation),
    /// To [`Request::Audit`].
    Audited(AuditReport),
    /// To [`Request::Config`].
    Config(ConfigReport),
    /// To [`Request::Subscribe`]: what happens from now on is heard.
    Subscribed,
    /// After [`Reply::Subscribed`], any number of times.
    Event(Event),
    /// To [`Request::Watch`]: what becomes of packets from now on is told.
    Watching,
    /// After [`Reply::Watching`], any number of times.
    Watched(WatchReport),
    /// The request was understood and refused, or not understood.
    Error(AgentError),
}

/// The programs that now serve the port, and what is left to its maker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attached {
    /// The programs on the port's host end and on its bridge.
    pub programs: Vec<ProgramReport>,
    /// The largest packets that the container's end of the veth is to be handed, and to merge; none where it stays as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packets: Option<Packets>,
}

/// What was forgotten.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Detached {
    /// The port as it was attached; none if there was nothing.
    pub port: Option<Box<BridgePort>>,
}

/// What a garbage collection took away; links and addresses are the plugin's to remove.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Collected {
    /// The ports as they were attached.
    pub removed: Vec<BridgePort>,
}

/// Why a request was refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct AgentError {
    /// What kind of refusal; the plugin maps it to a CNI code.
    pub kind: ErrorKind,
    /// One line for a person.
    pub message: String,
}

/// The kinds of refusal, each with a CNI code that the plugin answers with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ErrorKind {
    /// The protocol's version is not spoken here. Code 11.
    Version,
    /// The message cannot be decoded or says something impossible. Code 6.
    Malformed,
    /// The attachment exists with another configuration. Code 106.
    Exists,
    /// CHECK found something missing or altered. Code 999 with the message.
    Altered,
    /// A link that the request names is not there or is another one. Code 11.
    NoLink,
    /// The kernel refused a program, a map entry or a link. Code 5.
    Kernel,
    /// The state directory cannot be written. Code 5.
    State,
    /// The request would change an attachment that this agent does not have. Code 100.
    NotAttached,
    /// The request asks for what this version of the agent does not do. Code 100.
    NotBuilt,
    /// The kernel lacks what the request needs. Code 105.
    Unsupported,
    /// The attachment asks for more bandwidth, or more host ports, than are left. Code 101.
    Capacity,
    /// Another attachment has the host port. Code 102.
    PortTaken,
    /// The bridge's uplink is missing, in use, or in another bridge. Code 104.
    Uplink,
    /// The pod's claim cannot be had by this attachment: it is of another uplink, or another attachment has it. Code 107.
    Claim,
    /// The VLAN's gateway cannot be made, or cannot have its address. Code 999 with the message.
    Gateway,
    /// The user may ask, and change nothing. Code 5.
    Forbidden,
    /// The agent cannot serve now (starting, stopping). Code 11.
    Unavailable,
}

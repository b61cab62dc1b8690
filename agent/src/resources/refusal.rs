//! Reasons to refuse a request, and the kind of error of each.

use shunt_agent_api::{AgentError, AttachmentKey, ErrorKind, Interface, PortMapping};

use crate::capacity::Shortage;
use crate::datapath::DatapathError;
use crate::explain::lookup_error::LookupError;
use crate::kernel::KernelError;
use crate::nft::NftError;
use crate::state::StoreError;

/// Why a claim cannot be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimFault {
    /// It is of another uplink.
    OtherUplink,
    /// Another attachment has it.
    Shared,
}

/// Why a request is refused.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// A field of the request is invalid.
    #[error("{field} {value:?}: {reason}")]
    Malformed {
        /// Which field.
        field: &'static str,
        /// What is in it.
        value: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The request needs a feature that this build lacks.
    #[error("{0} are not built in this version of the agent")]
    NotBuilt(&'static str),
    /// The kernel cannot do what the configuration asks for.
    #[error("{wanted} cannot be had: {reason}")]
    Unsupported {
        /// What is asked for.
        wanted: String,
        /// What is in the way.
        reason: &'static str,
    },
    /// The key is attached with another configuration.
    #[error("{key} is attached already, with another {differs}")]
    Exists {
        /// The key.
        key: AttachmentKey,
        /// What differs.
        differs: &'static str,
    },
    /// No attachment has this key.
    #[error("{0} is not attached by this agent, so its limits cannot be changed")]
    NotAttached(AttachmentKey),
    /// Another attachment owns the resource.
    #[error("{what} is {owner}'s already")]
    Taken {
        /// What.
        what: String,
        /// Whose.
        owner: AttachmentKey,
    },
    /// The node, or an interface that is no attachment's, has the address.
    #[error("{what} is {owner}'s own address")]
    Occupied {
        /// The address.
        what: String,
        /// The interface that has it.
        owner: String,
    },
    /// The link does not exist, or its index belongs to another link.
    #[error("there is no link {} with index {} in the agent's network namespace", .0.name, .0.index)]
    NoLink(Interface),
    /// CHECK found differences.
    #[error("{key}: {}", findings.join("; "))]
    Altered {
        /// The attachment.
        key: AttachmentKey,
        /// What is missing or altered.
        findings: Vec<String>,
    },
    /// The free capacity is too small.
    #[error("{key}: {shortage}")]
    Capacity {
        /// The attachment.
        key: AttachmentKey,
        /// The figures.
        shortage: Box<Shortage>,
    },
    /// Another attachment has the host port.
    #[error("host port {mapping} is {owner}'s already")]
    PortTaken {
        /// Which.
        mapping: PortMapping,
        /// Whose.
        owner: AttachmentKey,
    },
    /// There is no room for so many host ports.
    #[error(
        "{asked} entries of host ports are asked for (one of both families takes two), and {free} of {room} are free"
    )]
    TooManyPorts {
        /// Entries that the request takes.
        asked: usize,
        /// Entries that others have left.
        free: usize,
        /// All entries.
        room: usize,
    },
    /// The bridge's uplink cannot be one.
    #[error("uplink {name} {why}")]
    Uplink {
        /// The interface.
        name: String,
        /// What is wrong with it.
        why: String,
    },
    /// A pod's claim cannot be had by the attachment.
    #[error("{key}: claim {why}")]
    Claim {
        /// The attachment.
        key: AttachmentKey,
        /// What kind of fault.
        fault: ClaimFault,
        /// The claim's namespace and name, and what is wrong.
        why: String,
    },
    /// A VLAN's gateway cannot be made, or cannot have its address.
    #[error("gateway {name} {why}")]
    Gateway {
        /// Its interface.
        name: String,
        /// What is wrong.
        why: String,
    },
    /// A container's bridge was deleted, and the container cannot be attached again.
    #[error("its bridge {bridge} was deleted: {why}")]
    BridgeDeleted {
        /// The bridge.
        bridge: String,
        /// What is in the way.
        why: String,
    },
    /// A lease cannot be restored.
    #[error("its lease is missing, and cannot be put back: {0}")]
    Lease(#[from] shunt_leases::Error),
    /// Programs cannot be attached to the sockets of the node.
    #[error("host ports are unreachable from the node itself: {0}")]
    Sockets(String),
    /// Nobody can watch now.
    #[error("packets cannot be watched: {0}")]
    Watching(String),
    /// The kernel refused.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// The kernel refused the masquerade rules.
    #[error("masquerade: {0}")]
    Nft(#[from] NftError),
    /// The state directory refused.
    #[error(transparent)]
    State(#[from] StoreError),
}

impl From<LookupError> for Refusal {
    fn from(error: LookupError) -> Self {
        match error {
            LookupError::Map { map, source } => DatapathError::Map { map, source }.into(),
            LookupError::Route(source) => Self::Kernel(source.into()),
        }
    }
}

impl From<DatapathError> for Refusal {
    fn from(error: DatapathError) -> Self {
        Self::Kernel(error.into())
    }
}

impl Refusal {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Malformed { .. } => ErrorKind::Malformed,
            Self::NotBuilt(_) => ErrorKind::NotBuilt,
            Self::Unsupported { .. } => ErrorKind::Unsupported,
            Self::NotAttached(_) => ErrorKind::NotAttached,
            Self::Exists { .. } | Self::Taken { .. } | Self::Occupied { .. } => ErrorKind::Exists,
            Self::NoLink(_) => ErrorKind::NoLink,
            Self::Altered { .. } => ErrorKind::Altered,
            Self::PortTaken { .. } => ErrorKind::PortTaken,
            Self::Capacity { .. } | Self::TooManyPorts { .. } => ErrorKind::Capacity,
            Self::Uplink { .. } => ErrorKind::Uplink,
            Self::Claim { .. } => ErrorKind::Claim,
            Self::Gateway { .. } => ErrorKind::Gateway,
            Self::Kernel(KernelError::NotOperational(_)) | Self::Watching(_) => ErrorKind::Unavailable,
            Self::Kernel(_) | Self::Nft(_) | Self::BridgeDeleted { .. } | Self::Sockets(_) => {
                ErrorKind::Kernel
            }
            Self::State(_) | Self::Lease(_) => ErrorKind::State,
        }
    }
}

impl From<Refusal> for AgentError {
    fn from(refusal: Refusal) -> Self {
        Self { kind: refusal.kind(), message: refusal.to_string() }
    }
}

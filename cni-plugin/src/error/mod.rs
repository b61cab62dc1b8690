//! Everything that can go wrong in a call, and the one place where the CNI error code is decided.

mod attach;
mod capacity;
mod check;
mod fault;
mod kept;
mod status;

use shunt_agent_api::{ClientError, ErrorKind};
use shunt_leases::{Error as LeasesError, LockError};
use shunt_netlink::NetlinkError;

pub(crate) use attach::AttachError;
pub(crate) use capacity::CapacityError;
pub(crate) use check::CheckError;
pub(crate) use fault::Fault;
pub(crate) use kept::KeptError;
pub(crate) use status::StatusError;

use crate::call::{CallError, Failure, NameError, Verb, Version};
use crate::config::ConfigError;
use crate::ipam::IpamError;
use crate::ipam::host_local::Error as BuiltInError;
use crate::node::NodeError;
use crate::node::sysctl::SysctlError;
use crate::result::ResultError;
use crate::via_agent::ServiceError;

/// A call failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error(transparent)]
    Call(#[from] CallError),
    #[error("error reading from stdin: {0}")]
    Stdin(std::io::Error),
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("config version {version} does not allow {}", verb.name())]
    VerbTooNew { verb: Verb, version: Version },
    #[error(transparent)]
    Node(#[from] NodeError),
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
    #[error(transparent)]
    Sysctl(#[from] SysctlError),
    #[error(transparent)]
    Agent(#[from] ClientError),
    #[error(transparent)]
    Ipam(#[from] IpamError),
    #[error(transparent)]
    Kept(#[from] KeptError),
    #[error("{source}; {cure}")]
    NotServed { source: ClientError, cure: String },
    #[error(transparent)]
    Attach(#[from] AttachError),
    #[error(transparent)]
    Result(#[from] ResultError),
    #[error(transparent)]
    Check(#[from] CheckError),
    #[error(transparent)]
    Status(#[from] StatusError),
    #[error(transparent)]
    Capacity(#[from] CapacityError),
    #[error(transparent)]
    Service(#[from] ServiceError),
    /// The service has done the call, and it has failed: what is to be printed.
    #[error("{}", .0.msg)]
    Served(Failure),
    #[error("{source}")]
    HalfUndone { source: Box<Error>, leftovers: Vec<Error> },
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Several(Vec<Error>),
}

/// The codes of the CNI specification, and shunt's from 100.
mod codes {
    pub(super) const INCOMPATIBLE_VERSION: u32 = 1;
    pub(super) const INVALID_ENVIRONMENT: u32 = 4;
    pub(super) const IO: u32 = 5;
    pub(super) const DECODING: u32 = 6;
    pub(super) const INVALID_CONFIG: u32 = 7;
    pub(super) const INVALID_NETNS: u32 = 8;
    pub(super) const TRY_AGAIN: u32 = 11;
    pub(super) const UNAVAILABLE: u32 = 50;
    pub(super) const NOT_BUILT: u32 = 100;
    pub(super) const CAPACITY: u32 = 101;
    pub(super) const PORT_TAKEN: u32 = 102;
    pub(super) const BRIDGE_FULL: u32 = 103;
    pub(super) const UPLINK: u32 = 104;
    pub(super) const KERNEL_LACKS: u32 = 105;
    pub(super) const EXISTS: u32 = 106;
    pub(super) const CLAIM: u32 = 107;
    pub(super) const OTHER: u32 = 999;
}

impl Error {
    /// The CNI error code.
    pub(crate) fn code(&self) -> u32 {
        match self {
            Self::Call(_) => codes::INVALID_ENVIRONMENT,
            Self::Stdin(_) | Self::Sysctl(_) => codes::IO,
            Self::Config(error) => config(error),
            Self::VerbTooNew { .. } => codes::INCOMPATIBLE_VERSION,
            Self::Node(error) => node(error),
            Self::Netlink(_) | Self::Check(_) => codes::OTHER,
            Self::Agent(error) => agent(error),
            Self::Ipam(error) => ipam(error),
            Self::Kept(error) => of_the_kept(error),
            Self::NotServed { source, .. } => agent(source),
            Self::Attach(error) => attach(error),
            Self::Result(_) | Self::Capacity(_) => codes::DECODING,
            Self::Status(StatusError::Ipam(error)) => match ipam(error) {
                code @ 50..=51 => code,
                _ => codes::UNAVAILABLE,
            },
            Self::Status(_) => codes::UNAVAILABLE,
            Self::Service(error) => service(error),
            Self::Served(failure) => failure.code,
            // Any of 3, 11 and those from 100 would say that nothing is left behind.
            Self::HalfUndone { .. } => codes::IO,
            Self::Several(errors) => errors.first().map_or(codes::OTHER, Self::code),
        }
    }

    /// Whether a bridge stays because others use it, or are about to.
    pub(crate) fn is_of_others_use(&self) -> bool {
        matches!(
            self,
            Self::Attach(AttachError::InUse { .. }) | Self::Node(NodeError::Lock(LockError::Held { .. }))
        )
    }

    /// The error of an ADD whose steps were taken back, but for `leftovers`.
    pub(crate) fn after_undo(self, leftovers: Vec<Self>) -> Self {
        if leftovers.is_empty() { self } else { Self::HalfUndone { source: Box::new(self), leftovers } }
    }

    /// The error as the specification wants it said.
    pub(crate) fn failure(&self, version: Version) -> Failure {
        let (msg, details) = match self {
            Self::Served(failure) => return failure.clone(),
            Self::Ipam(IpamError::Delegate { failure, .. }) => (self.to_string(), failure.details.clone()),
            Self::Config(ConfigError::Version(unknown)) => {
                ("incompatible CNI versions".to_owned(), unknown.to_string())
            }
            Self::HalfUndone { leftovers, .. } => {
                let texts: Vec<String> = leftovers.iter().map(ToString::to_string).collect();
                (self.to_string(), format!("left behind, because: {}", texts.join("; ")))
            }
            _ => (self.to_string(), String::new()),
        };
        Failure { version: version.as_str().to_owned(), code: self.code(), msg, details }
    }
}

fn config(error: &ConfigError) -> u32 {
    match error {
        ConfigError::Json(_) => codes::DECODING,
        ConfigError::Name(NameError::Character { .. }) => codes::INVALID_CONFIG,
        ConfigError::Version(_) => codes::INCOMPATIBLE_VERSION,
        ConfigError::NotBuilt { .. } => codes::NOT_BUILT,
        ConfigError::PrevResult(_) => codes::DECODING,
        _ => codes::INVALID_CONFIG,
    }
}

fn node(error: &NodeError) -> u32 {
    match error {
        NodeError::Namespace(_) => codes::INVALID_NETNS,
        NodeError::Netlink(_) => codes::OTHER,
        NodeError::Lock(error) => lock(error),
    }
}

fn lock(error: &LockError) -> u32 {
    match error {
        LockError::Held { .. } => codes::TRY_AGAIN,
        LockError::Io { .. } | LockError::Foreign { .. } => codes::IO,
    }
}

fn agent(error: &ClientError) -> u32 {
    match error {
        ClientError::Unreachable { .. } | ClientError::Silent { .. } | ClientError::Version(_) => {
            codes::TRY_AGAIN
        }
        ClientError::Frame(_) => codes::DECODING,
        ClientError::Refused(refusal) => match refusal.kind {
            ErrorKind::Version | ErrorKind::NoLink | ErrorKind::Unavailable => codes::TRY_AGAIN,
            ErrorKind::Malformed => codes::DECODING,
            ErrorKind::Exists => codes::EXISTS,
            ErrorKind::Altered | ErrorKind::Gateway => codes::OTHER,
            ErrorKind::Kernel | ErrorKind::State | ErrorKind::Forbidden => codes::IO,
            ErrorKind::Capacity => codes::CAPACITY,
            ErrorKind::PortTaken => codes::PORT_TAKEN,
            ErrorKind::Uplink => codes::UPLINK,
            ErrorKind::Claim => codes::CLAIM,
            ErrorKind::NotBuilt | ErrorKind::NotAttached => codes::NOT_BUILT,
            ErrorKind::Unsupported => codes::KERNEL_LACKS,
        },
    }
}

fn service(error: &ServiceError) -> u32 {
    match error {
        ServiceError::Unreachable { .. } | ServiceError::Silent { .. } | ServiceError::Older { .. } => {
            codes::TRY_AGAIN
        }
        ServiceError::Refused { code, .. } => *code,
        ServiceError::TooLong { .. } => codes::INVALID_CONFIG,
        ServiceError::Broken { .. } => codes::IO,
    }
}

fn of_the_kept(error: &KeptError) -> u32 {
    match error {
        KeptError::Failed { failure, .. } => failure.code,
        KeptError::Run { .. } => codes::IO,
        KeptError::Unreadable { .. } => codes::DECODING,
    }
}

fn ipam(error: &IpamError) -> u32 {
    match error {
        IpamError::Delegate { failure, .. } => failure.code,
        IpamError::NotFound { .. } | IpamError::Name(_) | IpamError::Interface(_) => codes::INVALID_CONFIG,
        IpamError::Run { .. } => codes::IO,
        IpamError::TimedOut { .. } => codes::TRY_AGAIN,
        IpamError::Unreadable { .. } | IpamError::Result { .. } => codes::DECODING,
        IpamError::Requested(_) => codes::INVALID_CONFIG,
        IpamError::BuiltIn(error) => built_in(error),
    }
}

fn attach(error: &AttachError) -> u32 {
    match error {
        AttachError::BridgeFull(_) => codes::BRIDGE_FULL,
        AttachError::Attached(_)
        | AttachError::OtherFacts { .. }
        | AttachError::VlanTaken { .. }
        | AttachError::GatewaysAddress { .. } => codes::EXISTS,
        AttachError::NoVlanDevices | AttachError::Unjoinable { .. } => codes::KERNEL_LACKS,
        AttachError::Mac(_) => codes::INVALID_ENVIRONMENT,
        AttachError::InUse { .. } | AttachError::OldAgent => codes::TRY_AGAIN,
        _ => codes::OTHER,
    }
}

fn built_in(error: &BuiltInError) -> u32 {
    match error {
        BuiltInError::InvalidConfig { .. } | BuiltInError::NoRanges | BuiltInError::SecondOfFamily { .. } => {
            codes::INVALID_CONFIG
        }
        BuiltInError::Leases(LeasesError::Lock(error)) => lock(error),
        BuiltInError::Io { .. } => codes::IO,
        BuiltInError::Unreleased(errors) => errors.first().map_or(codes::OTHER, built_in),
        _ => codes::OTHER,
    }
}

//! Why the service has not done a call.

use std::io;
use std::path::PathBuf;

/// What to do where there is no service.
const CURE: &str = "see that shunt-agent runs with a section [api] in its file, or take `viaAgent` out of the network's configuration";

/// The code of a service that is busy, maybe with the same attachment.
pub(super) const TRY_AGAIN: u32 = 11;

/// The service has not done a call. But for [`ServiceError::Broken`] nothing was begun.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ServiceError {
    /// Nobody listens.
    #[error("the agent's CNI service cannot be reached at {path}: {source}; {CURE}")]
    Unreachable { path: PathBuf, source: io::Error },
    /// Somebody listens, and says nothing.
    #[error("the agent's CNI service at {path} does not answer: {why}; {CURE}")]
    Silent { path: PathBuf, why: String },
    /// The service is one of an agent that cannot do this.
    #[error(
        "the agent's CNI service at {path} does not take calls of the plugin, the agent is older than it; {CURE}"
    )]
    Older { path: PathBuf },
    /// The service has refused the call.
    #[error("the agent's CNI service at {path} refuses the call: {msg}")]
    Refused { path: PathBuf, code: u32, msg: String },
    /// The configuration is longer than a message of the service's.
    #[error(
        "the configuration has {length} bytes, and the agent's CNI service takes {most} at most; take `viaAgent` out of it"
    )]
    TooLong { length: usize, most: usize },
    /// The service went away, or failed, after the call had been sent.
    #[error(
        "the agent's CNI service at {path} has not answered: {why}; what it has made of the call stays until a DEL takes it down"
    )]
    Broken { path: PathBuf, why: String },
}

impl ServiceError {
    /// Whether the call can be done here: the service does not work on it, and will not. One that is busy may be at an earlier call about the
    /// same attachment.
    pub(crate) fn may_be_done_here(&self) -> bool {
        !matches!(self, Self::Broken { .. } | Self::Refused { code: TRY_AGAIN, .. })
    }
}

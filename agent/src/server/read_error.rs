//! Why a message is no request.

use shunt_agent_api::{ErrorKind, PREVIOUS_VERSION, Reply, VERSION};

use super::wire::refusal;

/// Why a message is no request.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReadError {
    #[error("the agent speaks versions {VERSION} and {PREVIOUS_VERSION} of the protocol, not {0}")]
    Version(u32),
    #[error("not a message of this protocol: {0}")]
    Json(#[from] serde_json::Error),
    #[error("nothing was announced on this connection")]
    NotAnnounced,
}

impl From<ReadError> for Reply {
    fn from(error: ReadError) -> Self {
        let kind = match error {
            ReadError::Version(_) => ErrorKind::Version,
            ReadError::Json(_) | ReadError::NotAnnounced => ErrorKind::Malformed,
        };
        refusal(kind, error.to_string())
    }
}

//! The answer to a request that the agent does not begin, or cannot end.

use shunt_agent_api::{AgentError, ErrorKind, Reply};

/// Says why; the same request may be answered later.
pub(super) fn unavailable(why: &str) -> Reply {
    Reply::Error(AgentError { kind: ErrorKind::Unavailable, message: why.to_owned() })
}

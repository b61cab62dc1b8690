//! One client's requests, in this version of the protocol or the previous one.

use serde_json::Value;
use shunt_agent_api::{Envelope, PREVIOUS_VERSION, Request, TraceParent, VERSION};

use super::previous_version::Announced;
use super::read_error::ReadError;

/// A request, until when its asker waits, how it takes the answer, and the trace of which it is a part.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) request: Request,
    pub(super) deadline: Option<u64>,
    /// Whether the answer may come in parts.
    pub(super) parts: bool,
    pub(super) trace: Option<TraceParent>,
}

/// Reads one client's messages.
#[derive(Debug)]
pub(super) struct Reader {
    /// The version that the client speaks, as far as it has spoken.
    pub(super) version: u32,
    announced: Announced,
}

impl Default for Reader {
    fn default() -> Self {
        Self { version: VERSION, announced: Announced::default() }
    }
}

impl Reader {
    /// Reads a message's JSON; none if it is the first part of a request, which has no reply.
    ///
    /// # Errors
    /// [`ReadError`].
    pub(super) fn read(&mut self, json: &[u8]) -> Result<Option<Asked>, ReadError> {
        let Envelope::<Value> { version, deadline, parts, trace, more: _, body } =
            serde_json::from_slice(json)?;
        let request = match version {
            VERSION => {
                self.version = version;
                Some(serde_json::from_value(body)?)
            }
            PREVIOUS_VERSION => {
                self.version = version;
                self.announced.read(body)?
            }
            other => return Err(ReadError::Version(other)),
        };
        Ok(request.map(|request| Asked { request, deadline, parts, trace }))
    }
}

//! The envelope around requests and replies, and the version of the protocol.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};

use crate::frame::{self, FrameError};
use crate::trace::TraceParent;

/// The protocol's version. The agent also serves [`PREVIOUS_VERSION`], so that plugin and agent may be of two releases; it refuses
/// every other version with [`ErrorKind::Version`](crate::ErrorKind::Version).
pub const VERSION: u32 = 3;

/// The version that the previous release spoke.
pub const PREVIOUS_VERSION: u32 = 2;

/// A message with the version of the protocol that it is written in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Envelope<T> {
    /// See [`VERSION`].
    pub version: u32,
    /// Of a request: until when its asker waits, in milliseconds of `CLOCK_MONOTONIC`. It is not begun later. None: whenever it is read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<u64>,
    /// Of a request: its asker takes the answer in parts, which have a bounded length ([`Reply::into_parts`](crate::Reply::into_parts)).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub parts: bool,
    /// Of a request: the trace of which it is a part. A value that is no trace counts as none.
    #[serde(default, deserialize_with = "if_any", skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceParent>,
    /// Of a reply: this is a part, and the next message has more of the same.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub more: bool,
    /// The request or reply.
    pub body: T,
}

impl<T> Envelope<T> {
    /// Wraps `body` in the current version.
    pub fn new(body: T) -> Self {
        Self { version: VERSION, deadline: None, parts: false, trace: None, more: false, body }
    }
}

/// A trace, if it is one.
fn if_any<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<TraceParent>, D::Error> {
    let said = serde_json::Value::deserialize(deserializer)?;
    Ok(said.as_str().and_then(|text| text.parse().ok()))
}

/// Why what is in an envelope cannot be taken out.
#[derive(Debug, thiserror::Error)]
pub enum EnvelopeError {
    /// It is written in this version of the protocol.
    #[error("it is written in version {0} of the protocol, not {VERSION}")]
    Version(u32),
    /// It is not what it should be.
    #[error(transparent)]
    Frame(#[from] FrameError),
}

impl<T: DeserializeOwned> Envelope<T> {
    /// Reads one message's JSON.
    ///
    /// # Errors
    /// [`EnvelopeError`].
    pub fn open(json: &[u8]) -> Result<Self, EnvelopeError> {
        // Nearly always; what another version says may be no `T` at all.
        if let Ok(envelope @ Self { version: VERSION, .. }) = frame::decode(json) {
            return Ok(envelope);
        }
        let Envelope::<serde_json::Value> { version, deadline, parts, trace, more, body } =
            frame::decode(json)?;
        if version != VERSION {
            return Err(EnvelopeError::Version(version));
        }
        let body = serde_json::from_value(body).map_err(FrameError::Json)?;
        Ok(Self { version, deadline, parts, trace, more, body })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_that_is_none_refuses_no_request() {
        let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        for (trace, expected) in [
            (format!("\"{parent}\""), Some(parent)),
            ("\"00-1\"".to_owned(), None),
            ("5".to_owned(), None),
            ("{}".to_owned(), None),
            ("null".to_owned(), None),
        ] {
            let json = format!("{{\"version\":{VERSION},\"trace\":{trace},\"body\":7}}");
            let opened = Envelope::<u32>::open(json.as_bytes()).unwrap();
            assert_eq!(opened.trace.map(|trace| trace.to_string()).as_deref(), expected, "{json}");
        }
    }
}

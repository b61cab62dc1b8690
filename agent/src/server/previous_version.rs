//! Requests in the protocol's previous version (2), for a plugin of the previous release.
//!
//! They differ from today's in `attach` only: that names the peer where the host's end is to be set up, and may come in two parts: the
//! port without its place, which has no reply, and later its place.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use shunt_agent_api::{BridgePort, Interface, Request};

use super::read_error::ReadError;

/// The part of a request that one connection has sent so far.
#[derive(Debug, Default)]
pub(super) struct Announced(Option<BridgePort>);

/// The verbs that have changed since.
#[derive(Deserialize)]
#[serde(tag = "verb", content = "about", rename_all = "kebab-case")]
enum Changed {
    Attach { port: BridgePort, set_up: Option<IgnoredAny> },
    Announce { port: BridgePort },
    AttachAnnounced { place: Place, set_up: Option<IgnoredAny> },
}

/// What is left out of an announced port.
#[derive(Deserialize)]
struct Place {
    bridge: Interface,
    host: Interface,
    mtu: u32,
}

impl Announced {
    /// Reads a request; none if more of it is to come.
    ///
    /// # Errors
    /// [`ReadError`]: it is no request, or its first part is missing.
    pub(super) fn read(&mut self, body: Value) -> Result<Option<Request>, ReadError> {
        match body["verb"].as_str() {
            Some("attach" | "announce" | "attach-announced") => {}
            _ => return Ok(Some(serde_json::from_value(body)?)),
        }
        match serde_json::from_value(body)? {
            Changed::Attach { port, set_up } => Ok(Some(Request::Attach { port, set_up: set_up.is_some() })),
            Changed::Announce { port } => {
                self.0 = Some(port);
                Ok(None)
            }
            Changed::AttachAnnounced { place: Place { bridge, host, mtu }, set_up } => {
                let port = self.0.take().ok_or(ReadError::NotAnnounced)?;
                let port = BridgePort { bridge, host, mtu, ..port };
                Ok(Some(Request::Attach { port, set_up: set_up.is_some() }))
            }
        }
    }
}

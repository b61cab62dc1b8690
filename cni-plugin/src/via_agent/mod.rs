//! `viaAgent`: the agent's CNI service does the call in its process, by the same procedure.
//!
//! What the runtime has said is read here, so that what is wrong with it is said as ever. Then the call is sent as it came, and what the
//! procedure would have printed comes back. It is done in one of the two places and never in both: only a DEL that the service has not begun is
//! done here, for a container's end must not wait for an agent. One that is busy may be at the same attachment's ADD: then DEL is repeated.

mod client;
mod error;
mod message;

pub(crate) use error::ServiceError;
pub use message::{InvokeRequest, InvokeResponse, Outcome, Refusal};

use std::path::Path;

use crate::call::{Call, Failure, IN_SERVICE, Verb};
use crate::config::{Config, Personality};
use crate::error::{Error, StatusError};

/// Bytes of a configuration: a message of the service's has 1 MiB.
const MAX_CONFIG: usize = (1 << 20) - (16 << 10);

/// Has the service do the call; nothing where it is to be done here.
///
/// # Errors
/// What the procedure has failed by; [`ServiceError`] where it was not done.
pub(crate) fn hand_over(program: &str, config: &Config, call: &Call) -> Option<Result<String, Error>> {
    let socket = config.network.via_agent.as_deref().filter(|_| is_handed_over(config, call))?;
    match ask(socket, program, config, call) {
        Ok(Outcome::Done(text)) => Some(String::from_utf8(text).map_err(|_| unreadable(socket).into())),
        Ok(Outcome::Failed(text)) => Some(match serde_json::from_slice::<Failure>(&text) {
            Ok(failure) => Err(Error::Served(failure)),
            Err(_) => Err(unreadable(socket).into()),
        }),
        Ok(Outcome::Refused(Refusal { code, msg, .. })) => {
            of_service(ServiceError::Refused { path: socket.to_path_buf(), code, msg }, call.verb)
        }
        Err(error) => of_service(error, call.verb),
    }
}

/// Whether somebody else can do it. VALIDATE asks nobody; as an IPAM, and where another program of the service's has called it, the plugin is a
/// part of another one's call, which would be waited for.
fn is_handed_over(config: &Config, call: &Call) -> bool {
    let is_in_service = call.setting.is_service || call.variables.text(IN_SERVICE).is_some();
    !is_in_service && call.verb != Verb::Validate && config.personality != Personality::Ipam
}

fn of_service(error: ServiceError, verb: Verb) -> Option<Result<String, Error>> {
    match verb {
        Verb::Del if error.may_be_done_here() => None,
        Verb::Status => Some(Err(StatusError::Service(error).into())),
        _ => Some(Err(error.into())),
    }
}

fn unreadable(socket: &Path) -> ServiceError {
    ServiceError::Broken { path: socket.to_path_buf(), why: "its answer cannot be read".to_owned() }
}

fn ask(socket: &Path, program: &str, config: &Config, call: &Call) -> Result<Outcome, ServiceError> {
    let length = config.raw.len();
    if length > MAX_CONFIG {
        return Err(ServiceError::TooLong { length, most: MAX_CONFIG });
    }
    let request = InvokeRequest {
        plugin: program.to_owned(),
        command: call.verb.name().to_owned(),
        container_id: call.container.clone(),
        ifname: call.ifname.clone(),
        netns: call.netns.clone(),
        args: call.variables.text("CNI_ARGS").unwrap_or_default().to_owned(),
        netns_override: call.netns_override,
        runtime: call.runtime(),
        config: config.raw.clone(),
    };
    let trace = [("traceparent", "TRACEPARENT"), ("tracestate", "TRACESTATE"), ("baggage", "BAGGAGE")];
    let trace = trace.into_iter().filter_map(|(header, name)| Some((header, call.variables.text(name)?)));
    let response = client::call(socket, &request, trace)?;
    response.outcome.ok_or_else(|| unreadable(socket))
}

//! What the runtime said, as it is said on to other plugins.
//!
//! They are given the call's variables and not the process's: in a process that serves several calls at a time these differ.

use std::ffi::{OsStr, OsString};
use std::process::Command;

/// Set where the agent's CNI service has run the program: it waits for it, so that what is handed over to it would wait for itself.
pub const IN_SERVICE: &str = "SHUNT_IN_SERVICE";

/// The variables of the specification, the trace of which the call is a part (W3C Trace Context and Baggage), and who waits for it.
const NAMES: [&str; 10] = [
    "CNI_CONTAINERID",
    "CNI_NETNS",
    "CNI_IFNAME",
    "CNI_ARGS",
    "CNI_PATH",
    "CNI_NETNS_OVERRIDE",
    "TRACEPARENT",
    "TRACESTATE",
    "BAGGAGE",
    IN_SERVICE,
];

/// The variables of one call, without its verb.
#[derive(Clone, Debug, Default)]
pub(crate) struct Variables(Vec<(&'static str, Option<OsString>)>);

impl Variables {
    /// Reads them through `get`.
    pub(super) fn read(get: impl Fn(&str) -> Option<OsString>) -> Self {
        Self(NAMES.into_iter().map(|name| (name, get(name))).collect())
    }

    /// One of them, if it is text.
    pub(crate) fn text(&self, wanted: &str) -> Option<&str> {
        self.0.iter().find(|(name, _)| *name == wanted).and_then(|(_, value)| value.as_deref()?.to_str())
    }

    /// A program in their environment; a variable that the call does not have is not the process's either.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>, verb: &str) -> Command {
        let mut command = Command::new(program);
        command.env("CNI_COMMAND", verb);
        for (name, value) in &self.0 {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command
    }
}

//! What the process that does a call has decided; neither the runtime nor the configuration has a say in it.

use std::path::PathBuf;
use std::time::Duration;

/// The default is that of a process that a runtime has started for one call.
#[derive(Clone, Debug, Default)]
pub struct Setting {
    /// The process that asks; none: this process's parent.
    pub caller: Option<u32>,
    /// The name of the runtime, if whoever has handed the call over knows it.
    pub runtime: Option<String>,
    /// Where the agent listens, whatever the configuration and the environment say.
    pub agent_socket: Option<PathBuf>,
    /// How long an IPAM's program may take for which the configuration has no `ipamTimeout`; none: as long as it likes.
    pub program_limit: Option<Duration>,
    /// Whether this is the service to which `viaAgent` hands calls over.
    pub is_service: bool,
}

//! What the agent remembers of who opens host ports.

use std::time::Instant;

use super::harms::Harms;

/// Who opens host ports, and why.
#[derive(Debug, Default)]
pub(crate) struct Opening {
    /// Whether rules are asked for host ports at all (`filter_host_ports`).
    pub(super) is_asked: bool,
    /// Who has rules that may refuse or change something of what comes to host ports.
    pub(super) by: Vec<String>,
    /// What these rules do.
    pub(super) harms: Harms,
    /// Why the kernel has refused our rules, where it has; then the programs open.
    pub(super) refused: Option<String>,
    /// When it was last looked for connections that the kernel carries though it opens none any more; none while there are none.
    pub(super) carried: Option<Instant>,
}

impl Opening {
    /// Whether connections that the kernel has opened may live.
    pub(crate) fn carries(&self) -> bool {
        self.carried.is_some()
    }

    /// The kernel has taken our rules.
    pub(crate) fn grant(&mut self) {
        self.refused = None;
    }

    /// The kernel has not.
    pub(super) fn refuse(&mut self, why: String) {
        tracing::warn!(error = why, "the kernel cannot open host ports: the programs do, past others' rules");
        self.refused = Some(why);
    }

    pub(super) fn forget(&mut self) {
        (self.by, self.harms) = (Vec::new(), Harms::default());
    }
}

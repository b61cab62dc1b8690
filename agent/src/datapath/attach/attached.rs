//! What is attached, and how.

use shunt_agent_api::ProgramMode;

use super::hook::Hook;

/// An attached program.
#[derive(Clone, Debug)]
pub(in crate::datapath) struct Attached {
    /// Where.
    pub(in crate::datapath) hook: Hook,
    /// How.
    pub(in crate::datapath) mode: ProgramMode,
}

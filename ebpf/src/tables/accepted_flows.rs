//! The maps of what others' rules have let through, as the stages see them.

use crate::abi::{AcceptedFlow, FlowKey, Heeding, Question};

/// Flows that the kernel has let through.
pub trait AcceptedFlows {
    /// How accepted flows are dealt with (`HEEDING`).
    fn heeding(&self) -> Option<Heeding>;

    /// A flow of which the kernel has let something through (`ACCEPTED`).
    fn accepted_flow(&self, key: &FlowKey) -> Option<AcceptedFlow>;

    /// Writes it. Where there is no room the flow is the kernel's to judge.
    fn accept_flow(&self, key: &FlowKey, value: &AcceptedFlow);

    /// Counts a segment of a flow that connection tracking checks ([`AcceptedFlow::checked`]). Returns how many there have been; none of an
    /// unknown flow.
    fn count_checked(&self, key: &FlowKey) -> Option<u16>;

    /// Asks the agent about a flow (`OPENED`).
    fn ask_agent(&self, question: &Question);

    /// Removes it.
    fn forget_accepted_flow(&self, key: &FlowKey);
}

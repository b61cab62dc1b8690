//! Pins: without them, the next agent would start with empty maps.

use super::reconcile::{Cause, Resource};
use super::{Finding, Node, Refusal};
use crate::datapath::attach::hook::Hook;
use crate::kernel::KernelError;

/// The pins of maps and programs.
pub(crate) struct Pins;

impl Resource for Pins {
    fn name(&self) -> String {
        "pins".to_owned()
    }

    fn observe(&self, node: &mut Node) -> Result<Vec<Finding>, Refusal> {
        Ok(node.datapath.missing_pins().into_iter().map(Finding::Pin).collect())
    }

    fn apply(&self, node: &mut Node, _: Cause<'_>) -> Result<(), Refusal> {
        Ok(node.datapath.pin_again()?)
    }
}

impl Node {
    /// A finding if a program is not attached.
    ///
    /// # Errors
    /// The kernel cannot say.
    pub(crate) fn audit_program(&mut self, hook: &Hook) -> Result<Vec<Finding>, KernelError> {
        let is_there = self.datapath.is_attached(hook)?;
        Ok(if is_there { Vec::new() } else { vec![Finding::Program(hook.clone())] })
    }
}

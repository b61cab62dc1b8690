//! Pins: without them, the next agent would start with empty maps.

use super::{Finding, Node};
use crate::datapath::attach::hook::Hook;
use crate::kernel::KernelError;

impl Node {
    /// Restores pins: without them, the next agent would start with empty maps.
    pub(crate) fn repair_pins(&mut self) {
        let findings = self.audit_pins();
        if !self.repairs.is_off() {
            self.repair_findings("pins", None, "", Ok(findings), |node, _| {
                node.datapath.pin_again()?;
                Ok(node.audit_pins())
            });
        }
    }

    /// Lists the pins that are gone.
    pub(crate) fn audit_pins(&self) -> Vec<Finding> {
        self.datapath.missing_pins().into_iter().map(Finding::Pin).collect()
    }

    /// A finding if a program is not attached.
    ///
    /// # Errors
    /// The kernel cannot say.
    pub(crate) fn audit_program(&mut self, hook: &Hook) -> Result<Vec<Finding>, KernelError> {
        let is_there = self.datapath.is_attached(hook)?;
        Ok(if is_there { Vec::new() } else { vec![Finding::Program(hook.clone())] })
    }
}

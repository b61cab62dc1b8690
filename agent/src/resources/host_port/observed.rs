//! What of a port's host ports is missing or altered.

use crate::datapath::maps::lookup;
use crate::datapath::{encode, in_map};
use crate::kernel::KernelError;
use crate::registry::Attachment;
use crate::resources::{Finding, Node};

impl Node {
    /// Lists missing or altered host ports.
    ///
    /// # Errors
    /// The kernel cannot say.
    pub(crate) fn audit_mappings(&self, attachment: &Attachment) -> Result<Vec<Finding>, KernelError> {
        let mut findings = Vec::new();
        for (key, mapping) in encode::mappings(attachment) {
            let entry = lookup(&self.datapath.maps.mappings, &key).map_err(in_map("MAPPINGS"))?;
            if entry != Some(mapping) {
                findings.push(Finding::entry("MAPPINGS", key.port.number(), entry.as_ref()));
            }
        }
        Ok(findings)
    }
}

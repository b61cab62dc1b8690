//! What of a trunk is missing.

use crate::datapath::programs;
use crate::registry::Trunk;
use crate::resources::{Finding, Node, Refusal};

impl Node {
    /// Lists the faults of a trunk.
    pub(crate) fn audit_trunk(&mut self, trunk: &Trunk) -> Result<Vec<Finding>, Refusal> {
        let link = &trunk.link;
        if self.kernel.link(link.index)?.is_none_or(|found| found.name != link.name) {
            return Ok(vec![Finding::Link(link.name.clone())]);
        }
        Ok(self.audit_program(&programs::of_trunk(trunk))?)
    }
}

//! A program of NAT ingress that is in force, and stays so.

use crate::datapath::attach::hook::Hook;
use crate::resources::reconcile::{Cause, Resource};
use crate::resources::{Finding, Node, Refusal};

/// A program of NAT ingress on one interface.
pub(crate) struct Ingress(Hook);

impl Ingress {
    /// Every one.
    pub(crate) fn all(node: &Node) -> Vec<Self> {
        node.nat_ingress.hooks.values().cloned().map(Self).collect()
    }
}

impl Resource for Ingress {
    fn name(&self) -> String {
        format!("NAT ingress of {}", self.0.ifname)
    }

    fn ifname(&self) -> &str {
        &self.0.ifname
    }

    fn observe(&self, node: &mut Node) -> Result<Vec<Finding>, Refusal> {
        // A failed query is no missing program: its link is probably gone.
        let is_lost = matches!(node.datapath.is_attached(&self.0), Ok(false));
        Ok(if is_lost { vec![Finding::Program(self.0.clone())] } else { Vec::new() })
    }

    fn apply(&self, node: &mut Node, _: Cause<'_>) -> Result<(), Refusal> {
        node.nat_ingress.hooks.remove(&self.0.ifindex);
        node.update_nat_ingress();
        Ok(())
    }
}

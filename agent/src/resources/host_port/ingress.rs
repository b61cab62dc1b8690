//! The programs of NAT ingress on one interface that are desired: they stay in force, and are attached once they can be.

use super::NatIngress;
use crate::datapath::attach::hook::Hook;
use crate::resources::Gravity;
use crate::resources::reconcile::{Cause, Resource};
use crate::resources::{Finding, Node, Refusal};

/// A program of NAT ingress on one interface, and the one beside it on the way out.
pub(crate) struct Ingress(Hook);

impl Ingress {
    pub(super) const fn of(hook: Hook) -> Self {
        Self(hook)
    }

    /// Every one.
    pub(crate) fn all(node: &Node) -> Vec<Self> {
        let NatIngress { hooks, missing, .. } = &node.nat_ingress;
        hooks.values().chain(missing.values()).cloned().map(Self).collect()
    }
}

impl Resource for Ingress {
    fn name(&self) -> String {
        format!("NAT ingress of {}", self.0.ifname)
    }

    fn ifname(&self) -> &str {
        &self.0.ifname
    }

    /// A host port still works by other interfaces.
    fn gravity(&self) -> Gravity {
        Gravity::Warning
    }

    fn observe(&self, node: &mut Node) -> Result<Vec<Finding>, Refusal> {
        // A failed query is no missing program: its link is probably gone.
        let mut hooks = node.with_way_out(&self.0);
        hooks.retain(|hook| matches!(node.datapath.is_attached(hook), Ok(false)));
        Ok(hooks.into_iter().map(Finding::Program).collect())
    }

    fn apply(&self, node: &mut Node, _: Cause<'_>) -> Result<(), Refusal> {
        node.nat_ingress.hooks.remove(&self.0.ifindex);
        node.nat_ingress.missing.insert(self.0.ifindex, self.0.clone());
        for hook in node.with_way_out(&self.0) {
            node.datapath.ensure(&hook)?;
            tracing::info!(%hook, "NAT ingress attached");
        }
        node.nat_ingress.missing.remove(&self.0.ifindex);
        node.nat_ingress.hooks.insert(self.0.ifindex, self.0.clone());
        node.update_masquerade_interfaces();
        Ok(())
    }
}

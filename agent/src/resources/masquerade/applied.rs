//! Keeps the interfaces that masquerade in the programs' map, `OUTLETS`.

use crate::resources::reconcile::{Cause, Resource};
use crate::resources::{Finding, Node, Refusal};

/// The entries of all such interfaces. Which these are is decided in `interfaces`.
pub(crate) struct Outlets;

impl Resource for Outlets {
    fn name(&self) -> String {
        "masquerading interfaces".to_owned()
    }

    fn observe(&self, node: &mut Node) -> Result<Vec<Finding>, Refusal> {
        Ok(Finding::entries("OUTLETS", &node.datapath.outlets()?, &node.masquerade.outlets))
    }

    fn apply(&self, node: &mut Node, _: Cause<'_>) -> Result<(), Refusal> {
        let (known, wanted) = (node.datapath.outlets()?, node.masquerade.outlets.clone());
        for ifindex in known.keys().filter(|ifindex| !wanted.contains_key(ifindex)) {
            node.datapath.erase_outlet(*ifindex)?;
        }
        if wanted.keys().any(|ifindex| !known.contains_key(ifindex)) {
            node.learn_masqueraded()?;
        }
        for (ifindex, outlet) in wanted {
            if known.get(&ifindex) != Some(&outlet) {
                node.datapath.write_outlet(ifindex, outlet)?;
            }
        }
        Ok(())
    }
}

//! Keeps the addresses by which masqueraded connections leave in the programs' maps, `OUTLETS` and `SOURCES`.

use std::collections::BTreeSet;
use std::net::IpAddr;

use shunt_dataplane::abi::AddressKey;
use shunt_dataplane::abi::translation::SourceKey;

use super::ways_out::WaysOut;
use crate::resources::difference::Difference;
use crate::resources::reconcile::{Cause, Resource};
use crate::resources::{Finding, Node, Refusal};

/// The entries of all such addresses. Which these are is decided in `interfaces`.
pub(crate) struct Outlets;

impl Resource for Outlets {
    fn name(&self) -> String {
        "masquerading interfaces".to_owned()
    }

    fn observe(&self, node: &mut Node) -> Result<Vec<Finding>, Refusal> {
        let WaysOut { outlets, sources, .. } = &node.masquerade.ways_out;
        let of_outlet =
            |key: &AddressKey| format!("{} of interface {}", IpAddr::from(key.address), key.bridge);
        let of_source = |(bits, key): &(u32, SourceKey)| {
            format!("{}/{bits} by interface {}", IpAddr::from(key.address), key.ifindex)
        };
        let mut findings = Finding::entries("OUTLETS", &node.datapath.outlets()?, outlets, of_outlet);
        findings.extend(Finding::entries("SOURCES", &node.datapath.sources()?, sources, of_source));
        Ok(findings)
    }

    fn apply(&self, node: &mut Node, _: Cause<'_>) -> Result<(), Refusal> {
        node.masquerade.is_applied = false;
        let known = node.datapath.outlets()?;
        let WaysOut { outlets, sources, .. } = &node.masquerade.ways_out;
        let interfaces: BTreeSet<u32> = known.keys().map(|key| key.bridge).collect();
        let has_more = outlets.keys().any(|key| !interfaces.contains(&key.bridge));
        let outlets = Difference::between(&known, outlets);
        let sources = Difference::between(&node.datapath.sources()?, sources);
        if has_more {
            node.learn_masqueraded()?;
        }
        // None is chosen that is not there, and what goes makes room for what comes.
        for key in sources.erased {
            node.datapath.erase_source(key)?;
        }
        for key in outlets.erased {
            node.datapath.erase_outlet(&key)?;
        }
        for (key, outlet) in outlets.written {
            node.datapath.write_outlet(key, outlet)?;
        }
        for (key, source) in sources.written {
            node.datapath.write_source(key, source)?;
        }
        node.masquerade.is_applied = true;
        Ok(())
    }
}

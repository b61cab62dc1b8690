//! What a bridge's spanning tree wants of its uplinks (IEEE 802.1D-2004).
//!
//! The kernel's bridge runs the tree, or a daemon does for it; either way the bridge has a state for each port, and tells of
//! every change. By an uplink that does not forward nothing may go, tagged or not, or frames go round and round. And while a tree
//! changes, nobody is where he was.

use std::collections::{BTreeMap, BTreeSet};

use super::Agent;
use crate::kernel::KernelError;
use crate::uplink::Uplink;

impl Agent {
    /// Has the programs forward by an uplink if its bridge does, and not else. Answers the uplink as it then is.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn apply_port_state(&mut self, uplink: &Uplink) -> Result<Uplink, KernelError> {
        let blocked = self.is_blocked(uplink)?;
        let heeding = Uplink { blocked, ..uplink.clone() };
        if blocked == uplink.blocked {
            return Ok(heeding);
        }
        let (name, bridge) = (&uplink.link.name, &uplink.bridge.name);
        tracing::info!(uplink = %name, %bridge, forwards = !blocked, "the spanning tree changed the uplink's state");
        self.registry.uplinks.insert(uplink.link.index, heeding.clone());
        self.kernel.write_forwarding(&heeding)?;
        // What was beyond one uplink may be beyond another now.
        let of_bridge = |other: &&Uplink| other.bridge == uplink.bridge;
        for other in self.registry.uplinks.values().filter(of_bridge).cloned().collect::<Vec<_>>() {
            self.forget_beyond(&other)?;
        }
        Ok(heeding)
    }

    /// One that is no port yet begins as every port of its bridge does: with a spanning tree, it listens first.
    fn is_blocked(&mut self, uplink: &Uplink) -> Result<bool, KernelError> {
        let link = self.kernel.link(uplink.link.index)?;
        match link.filter(|link| link.master == Some(uplink.bridge.index)) {
            Some(port) => Ok(port.blocked),
            None => {
                let bridge = self.kernel.link(uplink.bridge.index)?;
                Ok(bridge.is_some_and(|bridge| bridge.bridging.spans_tree))
            }
        }
    }

    /// For how long stations beyond uplinks are believed on bridges whose tree changes, in nanoseconds.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn ageing(&mut self) -> Result<BTreeMap<u32, u64>, KernelError> {
        let bridges: BTreeSet<_> = self.registry.uplinks.values().map(|uplink| uplink.bridge.index).collect();
        let mut ageing = BTreeMap::new();
        for bridge in bridges {
            let link = self.kernel.link(bridge)?;
            if let Some(age) = link.and_then(|link| link.bridging.ageing) {
                ageing.insert(bridge, u64::try_from(age.as_nanos()).unwrap_or(u64::MAX));
            }
        }
        Ok(ageing)
    }
}

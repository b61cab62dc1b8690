//! Follows the port states of a bridge's spanning tree (IEEE 802.1D-2004).
//!
//! The kernel's bridge or a daemon runs the tree; netlink reports each port's state. Nothing is forwarded through an uplink that is not in
//! the forwarding state, or frames would loop. A topology change invalidates the learned stations.

use std::collections::{BTreeMap, BTreeSet};

use crate::kernel::KernelError;
use crate::registry::Uplink;
use crate::resources::Node;

impl Node {
    /// Applies the bridge's port state to an uplink. Returns the updated uplink.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn apply_port_state(&mut self, uplink: &Uplink) -> Result<Uplink, KernelError> {
        let (blocked, deaf) = (self.is_blocked(uplink)?, self.is_deaf(uplink)?);
        let heeding = Uplink { blocked, deaf, ..uplink.clone() };
        if deaf != uplink.deaf {
            self.registry.uplinks.insert(uplink.link.index, heeding.clone());
            self.apply_deafness(&heeding)?;
        }
        if blocked == uplink.blocked {
            return Ok(heeding);
        }
        let (name, bridge) = (&uplink.link.name, &uplink.bridge.name);
        tracing::info!(uplink = %name, %bridge, forwards = !blocked, "the spanning tree changed the uplink's state");
        self.registry.uplinks.insert(uplink.link.index, heeding.clone());
        self.datapath.write_forwarding(&heeding)?;
        // Stations may have moved to another uplink.
        let of_bridge = |other: &&Uplink| other.bridge == uplink.bridge;
        for other in self.registry.uplinks.values().filter(of_bridge).cloned().collect::<Vec<_>>() {
            self.forget_beyond(&other)?;
        }
        Ok(heeding)
    }

    /// Before it is a port, an uplink of a bridge with a spanning tree counts as blocked: it starts in the
    /// listening state.
    fn is_blocked(&mut self, uplink: &Uplink) -> Result<bool, KernelError> {
        let link = self.kernel.link(uplink.link.index)?;
        match link.filter(|link| link.master == Some(uplink.bridge.index)) {
            Some(port) => Ok(port.is_kept_from_forwarding()),
            None => {
                let bridge = self.kernel.link(uplink.bridge.index)?;
                Ok(bridge.is_some_and(|bridge| bridge.bridging.spans_tree))
            }
        }
    }

    /// Whether somebody has told the bridge to learn nothing from an uplink (`learning off`): then the programs do not either, and leave
    /// what is for stations beyond it to the bridge.
    fn is_deaf(&mut self, uplink: &Uplink) -> Result<bool, KernelError> {
        let link = self.kernel.link(uplink.link.index)?;
        Ok(link.is_some_and(|link| link.master == Some(uplink.bridge.index) && link.port_settings.deaf))
    }

    fn apply_deafness(&mut self, uplink: &Uplink) -> Result<(), KernelError> {
        let (name, bridge) = (&uplink.link.name, &uplink.bridge.name);
        tracing::info!(uplink = %name, %bridge, learns = !uplink.deaf, "somebody changed whether the bridge learns from the uplink");
        let mtu = self.kernel.link(uplink.link.index)?.map_or(0, |link| link.mtu);
        self.datapath.write_learning(uplink, mtu)?;
        if uplink.deaf { self.forget_beyond(uplink) } else { Ok(()) }
    }

    /// The ageing time per bridge during a topology change, in nanoseconds.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn ageing(&mut self) -> Result<BTreeMap<u32, u64>, KernelError> {
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

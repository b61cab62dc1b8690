//! A trunk that somebody else has made of a bridge's port, and that no configuration names.
//!
//! The kernel's bridge sees no frame of a port in VLANs, so nothing passes between the port and such a trunk. Once the trunk is named as
//! `uplink`, the programs serve it.

use shunt_agent_api::{BridgePort, Vlans};
use shunt_netlink::link::Link;

use super::validation::{names, unusable};
use crate::kernel::KernelError;
use crate::resources::bridge::leads_out;
use crate::resources::{Node, Refusal};

impl Node {
    /// Refuses VLANs on a bridge where somebody else's port carries one of them.
    ///
    /// # Errors
    /// [`Refusal::Uplink`].
    pub(crate) fn refuse_unnamed_trunk(&mut self, port: &BridgePort, bridge: &Link) -> Result<(), Refusal> {
        let Some(vlans) = &port.restrictions.vlans else { return Ok(()) };
        for foreign in self.kernel.ports(bridge.index)? {
            // A container that is being attached is not up.
            if !foreign.up || self.is_known(foreign.index) || names(port, &foreign.name) {
                continue;
            }
            if let Some(vid) = self.carried(&foreign, bridge, vlans)? {
                return Err(unusable(
                    &foreign.name,
                    format!(
                        "is not named as `uplink`, though it is a port of {} and carries VLAN {vid}: \
                         without that nothing passes between it and the container",
                        bridge.name
                    ),
                ));
            }
        }
        Ok(())
    }

    /// The first of these VLANs that a foreign port carries. A bridge that filters VLANs says so; on another one every port that leads
    /// out of the node carries all.
    fn carried(&mut self, foreign: &Link, bridge: &Link, vlans: &Vlans) -> Result<Option<u16>, KernelError> {
        let mut vids = vlans.untagged.iter().chain(&vlans.tagged).copied();
        if bridge.bridging.filters_vlans {
            let carried = self.kernel.vlans(foreign.index)?;
            return Ok(vids.find(|vid| carried.has(*vid)));
        }
        Ok(vids.next().filter(|_| leads_out(foreign)))
    }
}

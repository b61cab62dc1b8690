//! Bridges on which the programs suppress frames to groups that nobody needs. They have to have seen all that was said there, so that begins with
//! a bridge's first port only, and ends with anything that they do not see.

use shunt_netlink::link::Link;

use crate::registry::Bridge;
use crate::resources::{Node, Refusal};

/// Whether a bridge leaves to the programs who gets frames to groups: it neither asks for listeners, by whose reports it would forward, nor
/// keeps VLANs apart.
pub(super) fn may_spare(bridge: &Link) -> bool {
    !bridge.bridging.filters_vlans && !bridge.bridging.queries
}

impl Node {
    /// Begins with a bridge that has got its first port, before its other ports are looked for. Containers that have lost a bridge of this
    /// name may know addresses of that one.
    pub(super) fn spare(&mut self, bridge: &Bridge) -> Result<(), Refusal> {
        let Link { index, name, .. } = &bridge.link;
        let has_others = self.registry.uplinks.values().any(|uplink| uplink.bridge.index == *index)
            || self.has_unattached_on(*index)
            || self.orphans.iter().any(|orphan| orphan.port.bridge.name == *name);
        if self.datapath.spares && may_spare(&bridge.link) && !has_others {
            self.datapath.begin_sparing(*index)?;
        }
        Ok(())
    }
}

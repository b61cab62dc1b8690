//! Whether an interface can be a bridge's uplink. Changes nothing.

use shunt_agent_api::{BridgePort, BridgeUplink};
use shunt_netlink::link::Link;

use crate::resources::{Node, Refusal};

/// Kinds of links on top of an interface that receive frames before a bridge would.
const ON_TOP: [&str; 4] = ["vlan", "macvlan", "macvtap", "ipvlan"];

impl Node {
    /// Validates the uplink of a port's configuration, and records whether it is a port of the bridge
    /// already.
    ///
    /// # Errors
    /// [`Refusal::Uplink`].
    pub(crate) fn validate_uplink(&mut self, port: &mut BridgePort) -> Result<(), Refusal> {
        let Some(wanted) = &port.service.uplink else { return Ok(()) };
        let link = self.uplink_named(&wanted.name)?;
        let known = self.registry.uplinks.get(&link.index);
        let kept = match known {
            Some(known) if known.bridge == port.bridge => known.kept,
            Some(known) => {
                return Err(unusable(&link.name, format!("is the uplink of {}", known.bridge.name)));
            }
            None => {
                self.validate_link(&link, port)?;
                link.master == Some(port.bridge.index)
            }
        };
        port.service.uplink = Some(BridgeUplink { kept, ..wanted.clone() });
        Ok(())
    }

    pub(super) fn uplink_named(&mut self, name: &str) -> Result<Link, Refusal> {
        self.kernel.link_named(name)?.ok_or_else(|| unusable(name, "is not there"))
    }

    fn validate_link(&mut self, link: &Link, port: &BridgePort) -> Result<(), Refusal> {
        let refuse = |why: String| Err(unusable(&link.name, why));
        if link.index == port.bridge.index || link.kind.as_deref() == Some("bridge") {
            return refuse("is a bridge itself".to_owned());
        }
        if link.mac.is_none() || link.name == "lo" {
            return refuse("is no Ethernet interface".to_owned());
        }
        if self.registry.gateway_by_end(link.index).is_some() {
            return refuse("is the gateway of a VLAN".to_owned());
        }
        if self.is_known(link.index) {
            return refuse("is a container's".to_owned());
        }
        if self.registry.trunks().any(|trunk| trunk.link.index == link.index) {
            return refuse("is busy: VLAN interfaces are joined to it".to_owned());
        }
        let links = self.kernel.links()?;
        let is_on_top = |other: &&Link| {
            other.peer == Some(link.index) && other.kind.as_deref().is_some_and(|kind| ON_TOP.contains(&kind))
        };
        if let Some(other) = links.iter().find(is_on_top) {
            return refuse(format!("is busy: {} is on it", other.name));
        }
        if let Some(master) = link.master.filter(|master| *master != port.bridge.index) {
            let name = links.iter().find(|other| other.index == master).map(|other| other.name.as_str());
            return refuse(format!("is in {} already", name.unwrap_or("another bridge")));
        }
        if port.service.uplink.as_ref().is_some_and(|wanted| wanted.move_address) {
            return self.validate_relocation(link, port);
        }
        if let Some(address) = self.kernel.subnets(link.index)?.first() {
            let bridge = &port.bridge.name;
            return refuse(format!(
                "carries the node's own address {address}, which `uplinkMoveAddress` would move to {bridge}"
            ));
        }
        Ok(())
    }
}

/// Whether a port names this uplink.
pub(crate) fn names(port: &BridgePort, uplink: &str) -> bool {
    port.service.uplink.as_ref().is_some_and(|wanted| wanted.name == uplink)
}

/// The refusal of an interface as an uplink.
pub(crate) fn unusable(name: &str, why: impl Into<String>) -> Refusal {
    Refusal::Uplink { name: name.to_owned(), why: why.into() }
}

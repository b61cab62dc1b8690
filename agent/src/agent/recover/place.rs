//! Registers what a state file says, if the links are still there.

use shunt_agent_api::{BridgePort, Interface};
use shunt_netlink::link::Link;

use super::found::Found;
use crate::capacity::Demand;
use crate::registry::{Attachment, Bridge, Domain, External, PeerEnd, Settings, Trunk};
use crate::resources::Node;
use crate::resources::validation;

impl Node {
    /// Registers a record's attachment and bridge, if both links still have their index and name.
    ///
    /// # Errors
    /// Why it is dropped.
    pub(super) fn place(&mut self, port: &BridgePort, found: &mut Found) -> Result<(), String> {
        let mac = validation::port(port).map_err(|refusal| refusal.to_string())?;
        let find = |interface: &Interface| {
            let link = found.link(interface).cloned();
            link.ok_or_else(|| format!("the link {} is gone", interface.name))
        };
        let (host, bridge) = (find(&port.host)?, find(&port.bridge)?);
        if let Some(other) = self.registry.by_host(host.index) {
            return Err(format!("{} is {}'s", host.name, other.port.key));
        }
        let settings = self.settings_at_start(port, &host, &bridge);
        self.place_bridge(port, bridge, found)?;
        let (slot, peer) = (found.slot(self, host.index)?, PeerEnd::new(host.carrier, false));
        if let Err(error) = self.kernel.limit(port) {
            tracing::warn!(key = %port.key, %error, "cannot apply the limit");
            self.warnings.push(format!("{} is not limited: {error}", port.key));
        }
        self.place_uplink(port, &found.links, &mut found.previous_slots);
        self.place_gateway(port, &found.links, &mut found.previous_slots);
        if host.master == Some(port.bridge.index) {
            self.repairs.serves(&host);
        }
        let external = self.external_of(&host);
        self.ledger.allocate(&port.key, Demand::from(&port.bandwidth));
        let attachment = Attachment {
            external,
            settings,
            by_programs: self.masquerade.by_programs,
            ..Attachment::new(port.clone(), mac, slot, peer)
        };
        self.registry.insert(attachment);
        Ok(())
    }

    /// Registers what a port is joined to, once.
    fn place_bridge(&mut self, port: &BridgePort, link: Link, found: &mut Found) -> Result<(), String> {
        if let Some(trunk) = Trunk::of(port) {
            self.registry.insert_trunk(trunk);
        } else if self.registry.bridge(link.index).is_none() {
            let slot = found.slot(self, link.index)?;
            self.registry.insert_bridge(Bridge { link, slot, heeded: false });
        }
        Ok(())
    }

    /// What is set on the port of the kernel's bridge. After a failed query it takes the kernel's way.
    fn settings_at_start(&mut self, port: &BridgePort, host: &Link, bridge: &Link) -> Settings {
        self.settings_of(port, host, Some(bridge)).unwrap_or_else(|error| {
            self.warn(format!("cannot read what is set on the bridge port {}: {error}", host.name));
            Settings { domain: Domain::Other, ..Settings::of(port, host) }
        })
    }

    /// Others' filters on a host end. A failed query is no reason to drop the attachment: assume external filters, so that
    /// no packet bypasses them.
    fn external_of(&mut self, host: &Link) -> External {
        self.kernel.external(host.index).unwrap_or_else(|error| {
            self.warn(format!("cannot list external filters on {}: {error}", host.name));
            External { filters: true, queue: true, xdp: true }
        })
    }
}

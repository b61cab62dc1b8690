//! Uplinks of bridges: admission, enslavement, release.
//!
//! An interface is a bridge's uplink as long as an attachment's configuration names it. Programs are attached before it becomes a port and
//! detached after it was released: without them the kernel's bridge would forward the uplink's VLANs.

use shunt_agent_api::{BridgePort, BridgeUplink};
use shunt_dataplane::abi::NO_SLOT;
use shunt_dataplane::wire::address::Mac;
use shunt_netlink::link::Link;

use super::recover::{Entries, Links, PreviousSlots};
use super::{Agent, Refusal};
use crate::kernel::{Finding, KernelError};
use crate::uplink::Uplink;

/// Kinds of links on top of an interface that receive frames before a bridge would.
const ON_TOP: [&str; 4] = ["vlan", "macvlan", "macvtap", "ipvlan"];

impl Agent {
    /// Validates the uplink of a port's configuration, and records whether it is a port of the bridge
    /// already.
    ///
    /// # Errors
    /// [`Refusal::Uplink`].
    pub(super) fn admit_uplink(&mut self, port: &mut BridgePort) -> Result<(), Refusal> {
        let Some(wanted) = &port.service.uplink else { return Ok(()) };
        let link = self.uplink_named(&wanted.name)?;
        let known = self.registry.uplinks.get(&link.index);
        let kept = match known {
            Some(known) if known.bridge == port.bridge => known.kept,
            Some(known) => {
                return Err(unusable(&link.name, format!("is the uplink of {}", known.bridge.name)));
            }
            None => {
                self.validate_uplink(&link, port)?;
                link.master == Some(port.bridge.index)
            }
        };
        port.service.uplink = Some(BridgeUplink { kept, ..wanted.clone() });
        Ok(())
    }

    fn uplink_named(&mut self, name: &str) -> Result<Link, Refusal> {
        self.kernel.link_named(name)?.ok_or_else(|| unusable(name, "is not there"))
    }

    fn validate_uplink(&mut self, link: &Link, port: &BridgePort) -> Result<(), Refusal> {
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

    /// Makes the uplink of an attachment a port of its bridge, once.
    pub(super) fn build_uplink(&mut self, port: &BridgePort) -> Result<(), Refusal> {
        let Some(wanted) = &port.service.uplink else { return Ok(()) };
        let link = self.uplink_named(&wanted.name)?;
        if self.registry.uplinks.contains_key(&link.index) {
            return Ok(());
        }
        let uplink = uplink_of(port, wanted, &link, self.take_slot()?);
        self.foreign_ports.remove(&link.index);
        self.registry.uplinks.insert(link.index, uplink.clone());
        if wanted.move_address {
            self.begin_relocation(&uplink)?;
        }
        self.serve_uplink(&uplink)
    }

    /// Creates whatever the uplink lacks.
    fn serve_uplink(&mut self, uplink: &Uplink) -> Result<(), Refusal> {
        let uplink = &self.apply_port_state(uplink)?;
        let master = self.kernel.link(uplink.link.index)?.and_then(|link| link.master);
        if master.is_some_and(|master| master != uplink.bridge.index) {
            return Err(unusable(&uplink.link.name, "is in another bridge by now"));
        }
        self.kernel.write_uplink(uplink)?;
        for hook in uplink.hooks() {
            if !self.kernel.adopt(&hook)? {
                self.kernel.attach(&hook)?;
            }
        }
        // An earlier agent was killed before it wrote the relocation file: enslaving the uplink now would cut
        // the node off.
        if uplink.moves && master.is_none() && !self.relocations.contains_key(&uplink.link.name) {
            self.begin_relocation(uplink)?;
        }
        if self.is_relocating(uplink) {
            self.relocate(uplink)?;
            return self.serve_natives(uplink.bridge.index);
        }
        self.kernel.enslave_uplink(uplink)?;
        self.serve_natives(uplink.bridge.index)
    }

    /// Releases a removed attachment's uplink, unless another attachment of the bridge names it.
    pub(super) fn leave_uplink(&mut self, port: &BridgePort) -> Vec<KernelError> {
        let Some(wanted) = &port.service.uplink else { return Vec::new() };
        if self.registry.of_bridge(port.bridge.index).any(|other| names(&other.port, &wanted.name)) {
            return Vec::new();
        }
        self.repairs.resolve(&format!("uplink {}", wanted.name));
        let is_it = |uplink: &&Uplink| uplink.link.name == wanted.name && uplink.bridge == port.bridge;
        let uplink = self.registry.uplinks.values().find(is_it).cloned();
        if let Some(uplink) = &uplink {
            self.registry.uplinks.remove(&uplink.link.index);
        }
        let is_moved = self.relocations.get(&wanted.name).is_some_and(|known| known.bridge == port.bridge);
        if is_moved {
            self.return_relocation(&wanted.name);
        }
        let Some(uplink) = uplink else { return Vec::new() };
        let mut errors = Vec::new();
        if !uplink.kept && !is_moved {
            errors.extend(self.kernel.release_uplink(&uplink).err());
        }
        errors.extend(self.take_uplink(&uplink));
        // The former uplink may be a foreign port now.
        errors.extend(self.find_foreign_ports(&Entries::new()).err());
        errors
    }

    fn take_uplink(&mut self, uplink: &Uplink) -> Vec<KernelError> {
        let mut errors: Vec<_> = self.kernel.detach_native(uplink.link.index).err().into_iter().collect();
        let hooks = uplink.hooks();
        errors.extend(hooks.iter().filter_map(|hook| self.kernel.detach_and_wait(hook).err()));
        // The entry is removed last: a program that is still attached would drop all packets without it.
        if errors.is_empty() {
            errors.extend(self.kernel.erase_uplink(uplink));
        }
        self.registry.slots.give_back(uplink.slot);
        if let Err(error) = self.serve_natives(uplink.bridge.index) {
            tracing::warn!(bridge = %uplink.bridge.name, %error, "cannot update XDP on the bridge's other uplinks");
        }
        errors
    }

    /// The link is gone.
    pub(super) fn uplink_deleted(&mut self, index: u32) {
        let Some(uplink) = self.registry.uplinks.remove(&index) else { return };
        tracing::warn!(uplink = %uplink.link.name, bridge = %uplink.bridge.name, "uplink deleted");
        for error in self.take_uplink(&uplink) {
            tracing::warn!(uplink = %uplink.link.name, %error, "cannot remove the uplink's programs and entries");
        }
    }

    /// Registers the uplink of an earlier agent's attachment.
    pub(super) fn place_uplink(
        &mut self,
        port: &BridgePort,
        links: &Links,
        previous_slots: &mut PreviousSlots,
    ) {
        let Some(wanted) = &port.service.uplink else { return };
        let Some(link) = links.values().find(|link| link.name == wanted.name) else { return };
        if self.registry.uplinks.contains_key(&link.index) {
            return;
        }
        // An uplink works without a counter slot.
        let slot =
            previous_slots.remove(&link.index).or_else(|| self.take_slot_uncleared().ok()).unwrap_or(NO_SLOT);
        self.registry.uplinks.insert(link.index, uplink_of(port, wanted, link, slot));
    }

    /// Takes over the programs of an earlier agent.
    pub(super) fn adopt_uplinks(&mut self) {
        for uplink in self.registry.uplinks.values().cloned().collect::<Vec<_>>() {
            if let Err(error) = self.serve_uplink(&uplink) {
                self.warn(format!("uplink {}: cannot take over its programs: {error}", uplink.link.name));
            }
        }
    }

    /// Repairs uplinks, and enslaves uplinks that came back.
    pub(super) fn repair_uplinks(&mut self) {
        if self.repairs.is_off() {
            return;
        }
        for uplink in self.registry.uplinks.values().cloned().collect::<Vec<_>>() {
            let name = format!("uplink {}", uplink.link.name);
            let findings = self.audit_uplink(&uplink);
            if matches!(findings.as_deref(), Ok([Finding::Link(_)])) {
                self.uplink_deleted(uplink.link.index);
                continue;
            }
            self.repair_findings(&name, None, &uplink.link.name, findings, |agent, _| {
                agent.serve_uplink(&uplink)?;
                agent.audit_uplink(&uplink)
            });
        }
        for mut port in self.ports_without_uplink() {
            let Some(name) = port.service.uplink.as_ref().map(|wanted| wanted.name.clone()) else { continue };
            let findings = Ok(vec![Finding::Link(name.clone())]);
            self.repair_findings(&format!("uplink {name}"), None, &name, findings, |agent, _| {
                agent.admit_uplink(&mut port)?;
                agent.build_uplink(&port)?;
                Ok(Vec::new())
            });
        }
    }

    /// Lists the faults of an uplink.
    pub(super) fn audit_uplink(&mut self, uplink: &Uplink) -> Result<Vec<Finding>, Refusal> {
        let mut findings = self.kernel.audit_uplink(uplink)?;
        if self.is_relocating(uplink) {
            let (uplink, bridge) = (uplink.link.name.clone(), uplink.bridge.name.clone());
            findings.push(Finding::Relocation { uplink, bridge });
        }
        Ok(findings)
    }

    /// The uplink that a port names, if it serves.
    pub(super) fn uplink_of(&self, port: &BridgePort) -> Option<Uplink> {
        let wanted = port.service.uplink.as_ref()?;
        self.registry.uplinks.values().find(|uplink| uplink.link.name == wanted.name).cloned()
    }

    /// One port per uplink that is configured and missing.
    fn ports_without_uplink(&self) -> Vec<BridgePort> {
        let mut lacking: Vec<BridgePort> = Vec::new();
        for port in self.registry.attachments().map(|attachment| &attachment.port) {
            let Some(wanted) = &port.service.uplink else { continue };
            let serves = self.registry.uplinks.values().any(|uplink| uplink.link.name == wanted.name);
            if !serves && !lacking.iter().any(|other| names(other, &wanted.name)) {
                lacking.push(port.clone());
            }
        }
        lacking
    }
}

fn uplink_of(port: &BridgePort, wanted: &BridgeUplink, link: &Link, slot: u32) -> Uplink {
    Uplink {
        link: shunt_agent_api::Interface { name: link.name.clone(), index: link.index },
        mac: link.mac.map(Mac::new).unwrap_or_default(),
        bridge: port.bridge.clone(),
        kept: wanted.kept,
        moves: wanted.move_address,
        blocked: false,
        slot,
    }
}

pub(super) fn names(port: &BridgePort, uplink: &str) -> bool {
    port.service.uplink.as_ref().is_some_and(|wanted| wanted.name == uplink)
}

pub(super) fn unusable(name: &str, why: impl Into<String>) -> Refusal {
    Refusal::Uplink { name: name.to_owned(), why: why.into() }
}

//! Moves the node's addresses from an uplink to its bridge, and back.
//!
//! The relocation file is written before anything is changed. Every step is idempotent: with an attachment that names the uplink the move
//! is finished, otherwise it is reverted. If the bridge is deleted, the kernel deletes the addresses too; they are restored from the file.

use ipnet::IpNet;
use shunt_agent_api::{BridgePort, RelocationReport};
use shunt_dataplane::wire::address::Mac;
use shunt_netlink::link::Link;

use super::validation::{names, unusable};
use crate::registry::Uplink;
use crate::resources::{Node, Refusal};
use crate::state::{Phase, Relocation};

impl Node {
    /// Whether the uplink's addresses and routes can be moved to its bridge.
    ///
    /// # Errors
    /// [`Refusal::Uplink`].
    pub(crate) fn validate_relocation(&mut self, link: &Link, port: &BridgePort) -> Result<(), Refusal> {
        let (found, by_objects) = self.kernel.l3_config(link.index)?;
        if let Some(route) = by_objects.first() {
            return Err(unusable(
                &link.name,
                format!("has the route {route}, whose next hop is an object of its own"),
            ));
        }
        let bridge = self.kernel.link(port.bridge.index)?;
        if found.is_needed() && bridge.is_some_and(|bridge| bridge.bridging.spans_tree) {
            let why = format!(
                "cannot give its addresses to {}: a spanning tree would cut the node off",
                port.bridge.name
            );
            return Err(unusable(&link.name, why));
        }
        Ok(())
    }

    /// Writes the relocation file, if there is anything to move.
    ///
    /// # Errors
    /// The kernel's, the file system's; nothing was moved.
    pub(crate) fn begin_relocation(&mut self, uplink: &Uplink) -> Result<(), Refusal> {
        let name = &uplink.link.name;
        let (mut l3_config, _) = self.kernel.l3_config(uplink.link.index)?;
        let (present, _) = self.kernel.l3_config(uplink.bridge.index)?;
        for address in &mut l3_config.addresses {
            address.shared = present.addresses.iter().any(|other| other.is_same(address));
        }
        // The uplink was removed and came back; its addresses are on the bridge.
        let before = self.relocations.get(name).filter(|known| known.bridge == uplink.bridge).cloned();
        if before.is_none() && !l3_config.is_needed() {
            return Ok(());
        }
        let bridge = self.kernel.link(uplink.bridge.index)?.and_then(|link| link.mac).unwrap_or_default();
        let bridge_mac = before.as_ref().map_or(bridge, |before| before.bridge_mac);
        let held = before.map(|before| before.l3_config.left_in(present)).unwrap_or_default();
        self.write_relocation(Relocation {
            format: crate::state::FORMAT,
            boot: String::new(),
            uplink: uplink.link.clone(),
            bridge: uplink.bridge.clone(),
            bridge_mac,
            kept: uplink.kept,
            phase: Phase::Moving,
            l3_config: held.and(l3_config),
        })
    }

    /// Whether the move has to be finished before the uplink is a port.
    pub(crate) fn is_relocating(&self, uplink: &Uplink) -> bool {
        self.relocations.get(&uplink.link.name).is_some_and(|known| known.phase != Phase::Moved)
    }

    /// Enslaves an uplink and moves its addresses and routes to the bridge.
    ///
    /// # Errors
    /// The kernel's, the file system's; some may have been moved.
    pub(crate) fn relocate(&mut self, uplink: &Uplink) -> Result<(), Refusal> {
        let Some(mut known) = self.relocations.get(&uplink.link.name).cloned() else { return Ok(()) };
        if known.phase == Phase::Returning {
            known.phase = Phase::Moving;
            self.write_relocation(known.clone())?;
        }
        self.kernel.move_to_bridge(uplink, &known)?;
        self.hear_of_bridge(uplink.bridge.index)?;
        known.phase = Phase::Moved;
        let moved: Vec<_> = known.l3_config.prefixes().map(|prefix| prefix.to_string()).collect();
        self.write_relocation(known)?;
        let moved = moved.join(" ");
        tracing::info!(uplink = %uplink.link.name, bridge = %uplink.bridge.name, moved, "addresses moved to the bridge");
        Ok(())
    }

    /// Returns addresses and routes to an uplink and releases it. A failure is retried every second and shown
    /// in the status.
    pub(crate) fn return_relocation(&mut self, name: &str) {
        match self.try_to_bring_home(name) {
            Ok(()) => drop(self.failed_returns.remove(name)),
            Err(error) => {
                let why = error.to_string();
                if self.failed_returns.get(name) != Some(&why) {
                    tracing::error!(
                        uplink = name,
                        why,
                        "what was moved to its bridge could not be given back"
                    );
                    self.failed_returns.insert(name.to_owned(), why);
                }
            }
        }
    }

    fn try_to_bring_home(&mut self, name: &str) -> Result<(), Refusal> {
        let Some(mut known) = self.relocations.get(name).cloned() else { return Ok(()) };
        let uplink = self.uplink_of_relocation(&known)?;
        let bridge = self.kernel.link(known.bridge.index)?.filter(|link| link.name == known.bridge.name);
        if let Some(bridge) = bridge.as_ref().filter(|_| known.phase == Phase::Moved) {
            let (present, _) = self.kernel.l3_config(bridge.index)?;
            known.l3_config = known.l3_config.left_in(present);
        }
        if known.phase != Phase::Returning {
            known.phase = Phase::Returning;
            self.write_relocation(known.clone())?;
        }
        self.kernel.move_home(&known, &uplink, bridge.as_ref())?;
        if bridge.is_some() {
            self.hear_of_bridge(known.bridge.index)?;
        }
        self.store.remove_relocation(name)?;
        self.relocations.remove(name);
        tracing::info!(uplink = name, bridge = %known.bridge.name, "addresses returned to the uplink");
        Ok(())
    }

    /// The uplink may have been renamed or replugged; its index may belong to another link.
    fn uplink_of_relocation(&mut self, known: &Relocation) -> Result<Link, Refusal> {
        let name = &known.uplink.name;
        let by_index = self.kernel.link(known.uplink.index)?;
        let is_it = |link: &Link| link.name == *name || link.master == Some(known.bridge.index);
        match by_index.filter(is_it) {
            Some(link) => Ok(link),
            None => self.kernel.link_named(name)?.ok_or_else(|| unusable(name, "is not there")),
        }
    }

    /// Reads the relocation files of an earlier agent.
    pub(crate) fn read_relocations(&mut self) {
        match self.store.relocations() {
            Ok((found, aside)) => {
                self.aside.extend(aside);
                self.relocations =
                    found.into_iter().map(|known| (known.uplink.name.clone(), known)).collect();
            }
            Err(error) => self.warn(format!("cannot read the relocation files: {error}")),
        }
    }

    /// Returns addresses to uplinks that no attachment names.
    pub(crate) fn return_relocations(&mut self) {
        let is_named = |known: &Relocation| {
            self.registry.of_bridge(known.bridge.index).any(|attachment| {
                attachment.port.bridge == known.bridge && names(&attachment.port, &known.uplink.name)
            })
        };
        let left: Vec<_> = self.relocations.values().filter(|known| !is_named(known)).collect();
        let left: Vec<_> = left.into_iter().map(|known| known.uplink.name.clone()).collect();
        left.iter().for_each(|name| self.return_relocation(name));
    }

    /// Returns the addresses of a deleted bridge to its uplink. Returns the bridge's own MAC address if it
    /// had the uplink's.
    pub(crate) fn return_from_deleted_bridge(&mut self, bridge: u32) -> Option<Mac> {
        let lost = self.relocations.values().filter(|known| known.bridge.index == bridge);
        let lost: Vec<_> = lost.map(|known| (known.uplink.name.clone(), known.bridge_mac)).collect();
        lost.iter().for_each(|(name, _)| self.return_relocation(name));
        lost.first().map(|(_, mac)| Mac::new(*mac))
    }

    /// Which addresses of a bridge are an uplink's.
    pub(crate) fn relocated_to(&self, bridge: u32) -> impl Iterator<Item = IpNet> {
        let here = self.relocations.values().filter(move |known| known.bridge.index == bridge);
        here.flat_map(|known| known.l3_config.prefixes())
    }

    /// A [`RelocationReport`] for each uplink of which something was moved.
    pub(crate) fn relocation_reports(&self) -> Vec<RelocationReport> {
        let report = |known: &Relocation| RelocationReport {
            uplink: known.uplink.name.clone(),
            bridge: known.bridge.name.clone(),
            addresses: known.l3_config.prefixes().map(|prefix| prefix.to_string()).collect(),
            complete: known.phase == Phase::Moved,
        };
        self.relocations.values().map(report).collect()
    }

    /// Failed returns, for the status.
    pub(crate) fn relocation_warnings(&self) -> impl Iterator<Item = String> {
        self.failed_returns
            .iter()
            .map(|(uplink, why)| format!("addresses of {uplink} cannot be returned from its bridge: {why}"))
    }

    fn write_relocation(&mut self, relocation: Relocation) -> Result<(), Refusal> {
        self.store.write_relocation(&relocation)?;
        self.relocations.insert(relocation.uplink.name.clone(), relocation);
        Ok(())
    }

    /// The bridge's MAC address has changed; the kernel's event comes later.
    fn hear_of_bridge(&mut self, index: u32) -> Result<(), Refusal> {
        if let Some(known) = self.registry.bridge(index).cloned()
            && let Some(link) = self.kernel.link(index)?
        {
            self.bridge_changed(&known, &link)?;
        }
        Ok(())
    }
}

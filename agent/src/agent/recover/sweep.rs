//! Removes map entries and pins of an earlier agent that belong to no attachment. Failures are logged.

use std::collections::HashSet;

use shunt_dataplane::abi::{PORT_FOREIGN, PortKey};

use crate::datapath::attach::hook::{Hook, Program, ProgramSet};
use crate::datapath::encode;
use crate::datapath::in_map;
use crate::datapath::maps;
use crate::kernel::KernelError;
use crate::resources::Node;
use crate::resources::host_port::NAT_INGRESS;
use crate::resources::node::{Entries, Links, Swept};

impl Node {
    /// What is left may be needed by ports that stay as they are; then only what belongs to links that are gone is removed.
    pub(crate) fn sweep(&mut self, entries: &Entries, links: &Links, when: Swept) {
        let links_own = [("pins", self.sweep_pins(links, when)), ("PORTS", self.sweep_ports(entries, links))];
        let entries_alone = if self.unattached.is_empty() { self.sweep_entries() } else { Vec::new() };
        for (what, swept) in links_own.into_iter().chain(entries_alone) {
            if let Err(error) = swept {
                tracing::warn!(what, %error, "cannot remove what an earlier agent left");
            }
        }
    }

    fn sweep_entries(&mut self) -> Vec<(&'static str, Result<(), KernelError>)> {
        vec![
            ("FDB", self.sweep_stations()),
            ("ADDRESSES", self.sweep_addresses()),
            ("LINK_LOCALS", self.sweep_link_locals()),
            ("MAPPINGS", self.sweep_mappings()),
            ("MASQUERADES", self.sweep_masquerades()),
            ("MEMBERS", self.sweep_members()),
            ("LEARNED", self.sweep_beyond()),
            ("SUBNETS", self.datapath.sweep_subnets(self.registry.attachments()).map_err(KernelError::from)),
        ]
    }

    /// Whether what an interface has is left to it: of a bridge or a trunk, ports that stay as they are may need it.
    fn stays(&self, ifindex: u32, links: &Links) -> bool {
        self.is_known(ifindex) || !self.unattached.is_empty() && links.contains_key(&ifindex)
    }

    fn sweep_pins(&mut self, links: &Links, when: Swept) -> Result<(), KernelError> {
        for pinned in self.datapath.pinned()? {
            let is_container = Program::OF_CONTAINERS.contains(&pinned.program);
            if when == Swept::Meanwhile && is_container && links.contains_key(&pinned.ifindex) {
                continue;
            }
            // Programs of NAT ingress are swept once the interfaces are known.
            let on_trunk = self.registry.trunks().any(|trunk| trunk.link.index == pinned.ifindex);
            if !self.stays(pinned.ifindex, links) && !on_trunk && !NAT_INGRESS.contains(&pinned.program) {
                tracing::info!(pin = %pinned.path.display(), "removed a pin without an attachment");
                let ifname = links.get(&pinned.ifindex).map(|link| link.name.clone()).unwrap_or_default();
                // The node may be reachable through a former uplink, whose entry is removed next: wait until
                // the program is detached.
                let set = if Program::OF_UPLINKS.contains(&pinned.program) {
                    ProgramSet::Uplinks
                } else {
                    ProgramSet::default()
                };
                let hook = Hook { program: pinned.program, set, ifindex: pinned.ifindex, ifname };
                if set == ProgramSet::Uplinks {
                    self.datapath.detach_and_wait(&hook)?;
                } else {
                    self.datapath.detach(&hook)?;
                }
            }
        }
        Ok(())
    }

    /// An entry without an attachment shows where clsact filters may be left.
    fn sweep_ports(&mut self, entries: &Entries, links: &Links) -> Result<(), KernelError> {
        // Foreign ports have no programs and are checked later.
        let ours = entries.iter().filter(|(_, entry)| entry.flags & PORT_FOREIGN == 0);
        let unknown: Vec<_> =
            ours.map(|(ifindex, _)| *ifindex).filter(|ifindex| !self.stays(*ifindex, links)).collect();
        for ifindex in unknown {
            if let Some(link) = links.get(&ifindex) {
                for program in Program::ALL {
                    self.datapath.detach(&Hook::open(program, ifindex, link.name.clone()))?;
                }
            }
            maps::remove(&mut self.datapath.maps.ports, &PortKey { ifindex }).map_err(in_map("PORTS"))?;
            self.datapath.maps.clear_drops(ifindex);
        }
        Ok(())
    }

    fn sweep_stations(&mut self) -> Result<(), KernelError> {
        let containers = self.registry.attachments().map(encode::station_key);
        let gateways = self.registry.gateways.values().map(|gateway| encode::station_key(&gateway.port));
        let bridges = self.registry.bridges().filter_map(encode::bridge_station_key);
        let known: HashSet<_> = containers.chain(gateways).chain(bridges).collect();
        let swept = maps::retain(&mut self.datapath.maps.stations, |key| known.contains(key));
        Ok(swept.map_err(in_map("FDB"))?)
    }

    fn sweep_masquerades(&mut self) -> Result<(), KernelError> {
        let begins = self.datapath.begins_masquerading;
        let attachments = self.registry.attachments().filter(|_| begins);
        let known: HashSet<_> = attachments.flat_map(encode::masquerades).map(|(key, _)| key).collect();
        Ok(self.datapath.retain_masquerades(|key| known.contains(key))?)
    }

    fn sweep_mappings(&mut self) -> Result<(), KernelError> {
        let known: HashSet<_> =
            self.registry.attachments().flat_map(encode::mappings).map(|(key, _)| key).collect();
        let swept = maps::retain(&mut self.datapath.maps.mappings, |key| known.contains(key));
        Ok(swept.map_err(in_map("MAPPINGS"))?)
    }

    fn sweep_members(&mut self) -> Result<(), KernelError> {
        let registry = &self.registry;
        Ok(self.datapath.sweep_members(|bridge, ifindex| {
            registry.by_host(ifindex).is_some_and(|attachment| {
                attachment.port.bridge.index == bridge && attachment.is_flooded_to()
            }) || registry.uplinks.get(&ifindex).is_some_and(|uplink| uplink.bridge.index == bridge)
                || registry.gateway_by_end(ifindex).is_some_and(|gateway| gateway.place().0 == bridge)
        })?)
    }

    fn sweep_beyond(&mut self) -> Result<(), KernelError> {
        let uplinks = &self.registry.uplinks;
        self.datapath.sweep_natives(|ifindex| uplinks.contains_key(&ifindex))?;
        self.datapath.sweep_uplinks(|ifindex| uplinks.contains_key(&ifindex))?;
        Ok(self.datapath.sweep_learned(|bridge, ifindex| {
            uplinks.get(&ifindex).is_some_and(|uplink| uplink.bridge.index == bridge)
        })?)
    }

    fn sweep_addresses(&mut self) -> Result<(), KernelError> {
        let known: HashSet<_> = self.registry.attachments().flat_map(encode::address_keys).collect();
        let swept = maps::retain(&mut self.datapath.maps.addresses, |key| known.contains(key));
        Ok(swept.map_err(in_map("ADDRESSES"))?)
    }

    fn sweep_link_locals(&mut self) -> Result<(), KernelError> {
        let is_known = |key: &PortKey| self.registry.by_host(key.ifindex).is_some();
        let swept = maps::retain(&mut self.datapath.maps.link_locals, is_known);
        Ok(swept.map_err(in_map("LINK_LOCALS"))?)
    }
}

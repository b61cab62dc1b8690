//! Taking over what an earlier agent left: state files, map entries, pins and links are brought together, what was
//! begun is finished, what is gone is forgotten. Traffic goes on meanwhile: a program that is attached is replaced in
//! place, an entry that is right is not written.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Instant;

use dataplane::abi::{AddressKey, Port, PortKey, StationKey};
use shunt_agent_api::BridgePort;

use super::{Agent, OpenError, admit};
use crate::bpf::hook::{Hook, Program};
use crate::bpf::maps;
use crate::kernel::{Asks, KernelError};
use crate::netlink::link::Link;
use crate::registry::{Attachment, Bridge};

impl Agent {
    pub(super) fn reconcile(&mut self) -> Result<(), OpenError> {
        let begun = Instant::now();
        let loaded = self.store.load()?;
        for aside in loaded.aside {
            tracing::warn!(path = %aside.path.display(), reason = %aside.reason, "a state file was set aside");
            self.aside.push(aside.path);
        }
        for port in &loaded.outlived {
            tracing::info!(key = %port.key, "forgotten: the machine has been restarted");
        }
        let links: HashMap<u32, Link> =
            self.kernel.links()?.into_iter().map(|link| (link.index, link)).collect();
        let entries: BTreeMap<u32, Port> = self.port_entries()?;
        let mut lost = Vec::new();
        for record in loaded.records {
            match self.place(&record.port, &links, &entries) {
                Ok(()) => {}
                Err(why) => {
                    tracing::info!(key = %record.port.key, %why, "forgotten");
                    lost.push(record.port);
                }
            }
        }
        for port in &lost {
            self.store.remove(&port.key)?;
        }
        self.sweep(&entries, &links)?;
        let unsure = self.adopt_all(&entries)?;
        if !unsure.is_empty() {
            self.learn(&unsure);
        }
        let (adopted, lost, repaired) = (self.registry.len(), lost.len(), unsure.len());
        tracing::info!(adopted, lost, repaired, took = ?begun.elapsed(), "reconciled");
        Ok(())
    }

    fn port_entries(&self) -> Result<BTreeMap<u32, Port>, KernelError> {
        let entries = self.kernel.maps.ports.iter().map(|entry| entry.map(|(key, port)| (key.ifindex, port)));
        entries.collect::<Result<_, _>>().map_err(|source| KernelError::Map { map: "PORTS", source })
    }

    /// Notes a record's attachment and its bridge, if both links are still the ones that it names.
    fn place(
        &mut self,
        port: &BridgePort,
        links: &HashMap<u32, Link>,
        entries: &BTreeMap<u32, Port>,
    ) -> Result<(), String> {
        let mac = admit::port(port).map_err(|refusal| refusal.to_string())?;
        let find = |interface: &shunt_agent_api::Interface| {
            links
                .get(&interface.index)
                .filter(|link| link.name == interface.name)
                .ok_or_else(|| format!("the link {} is gone", interface.name))
        };
        let (host, bridge) = (find(&port.host)?, find(&port.bridge)?);
        if let Some(other) = self.registry.by_host(host.index) {
            return Err(format!("{} is {}'s", host.name, other.port.key));
        }
        if self.registry.bridge(bridge.index).is_none() {
            let slot = self.inherit_slot(entries.get(&bridge.index)).map_err(|error| error.to_string())?;
            self.registry.insert_bridge(Bridge { link: bridge.clone(), slot });
        }
        let slot = self.inherit_slot(entries.get(&host.index)).map_err(|error| error.to_string())?;
        self.registry.insert(Attachment {
            port: port.clone(),
            mac,
            slot,
            peer_up: host.carrier,
            abandoned: false,
        });
        Ok(())
    }

    /// The counters that a port had, so that they go on counting; else new ones.
    fn inherit_slot(&mut self, entry: Option<&Port>) -> Result<u32, KernelError> {
        match entry {
            Some(entry) if self.registry.slots.claim(entry.slot) => Ok(entry.slot),
            _ => self.take_slot(),
        }
    }

    /// Removes pins and entries that no attachment accounts for.
    fn sweep(&mut self, entries: &BTreeMap<u32, Port>, links: &HashMap<u32, Link>) -> Result<(), OpenError> {
        for pinned in self.kernel.pinned()? {
            if !self.is_known(pinned.ifindex) {
                tracing::info!(pin = %pinned.path.display(), "removed: no attachment has it");
                let ifname = links.get(&pinned.ifindex).map(|link| link.name.clone()).unwrap_or_default();
                self.kernel.detach(&Hook { program: pinned.program, ifindex: pinned.ifindex, ifname })?;
            }
        }
        for ifindex in entries.keys().filter(|ifindex| !self.is_known(**ifindex)).copied().collect::<Vec<_>>()
        {
            if let Some(link) = links.get(&ifindex) {
                for program in Program::ALL {
                    let hook = Hook { program, ifindex, ifname: link.name.clone() };
                    self.kernel.detach(&hook)?;
                }
            }
            maps::remove(&mut self.kernel.maps.ports, &PortKey { ifindex })
                .map_err(|source| KernelError::Map { map: "PORTS", source })?;
            self.kernel.maps.clear_drops(ifindex);
        }
        self.sweep_stations()?;
        self.sweep_addresses()
    }

    fn sweep_stations(&mut self) -> Result<(), OpenError> {
        let in_fdb = |source| KernelError::Map { map: "FDB", source };
        let stations: Vec<_> = self.kernel.maps.stations.iter().collect::<Result<_, _>>().map_err(in_fdb)?;
        let known: HashSet<StationKey> = self.registry.attachments().map(Attachment::station_key).collect();
        let bridges: HashSet<_> = self.registry.bridges().filter_map(Bridge::station_key).collect();
        for (key, _) in stations.iter().filter(|(key, _)| !known.contains(key) && !bridges.contains(key)) {
            maps::remove(&mut self.kernel.maps.stations, key).map_err(in_fdb)?;
        }
        Ok(())
    }

    fn sweep_addresses(&mut self) -> Result<(), OpenError> {
        let in_map = |source| KernelError::Map { map: "ADDRESSES", source };
        let addresses: Vec<AddressKey> =
            self.kernel.maps.addresses.keys().collect::<Result<_, _>>().map_err(in_map)?;
        let known: HashSet<_> = self.registry.attachments().flat_map(Attachment::address_keys).collect();
        for key in addresses.iter().filter(|key| !known.contains(key)) {
            maps::remove(&mut self.kernel.maps.addresses, key).map_err(in_map)?;
        }
        Ok(())
    }

    pub(super) fn is_known(&self, ifindex: u32) -> bool {
        self.registry.by_host(ifindex).is_some() || self.registry.bridge(ifindex).is_some()
    }

    /// Puts this agent's programs behind everything that is known. Returns the host ends of the ports that were
    /// without a program for a while: the kernel may have begun flows of theirs.
    fn adopt_all(&mut self, entries: &BTreeMap<u32, Port>) -> Result<HashSet<u32>, OpenError> {
        let mut unsure = HashSet::new();
        let bridges: Vec<_> = self.registry.bridges().cloned().collect();
        for bridge in &bridges {
            if entries.get(&bridge.link.index) != Some(&bridge.port_entry()) {
                self.kernel.write_bridge(bridge)?;
            }
            if !self.kernel.adopt(&bridge.hook())? {
                let ports: Vec<_> = self.registry.of_bridge(bridge.link.index).cloned().collect();
                for port in &ports {
                    self.kernel.write_port(port, Asks::Learn)?;
                    unsure.insert(port.port.host.index);
                }
                self.kernel.attach(&bridge.hook())?;
            }
        }
        let attachments: Vec<_> = self.registry.attachments().cloned().collect();
        for attachment in &attachments {
            if self.adopt_port(attachment, entries)? {
                unsure.insert(attachment.port.host.index);
            }
        }
        Ok(unsure)
    }

    /// True if a program had been missing.
    fn adopt_port(
        &mut self,
        attachment: &Attachment,
        entries: &BTreeMap<u32, Port>,
    ) -> Result<bool, OpenError> {
        let ifindex = attachment.port.host.index;
        let asks = entries.get(&ifindex).map(|entry| entry.asks);
        let entry_is_right =
            asks.is_some_and(|asks| entries.get(&ifindex) == Some(&attachment.port_entry(asks)));
        let mut missing = Vec::new();
        for hook in attachment.hooks() {
            if !self.kernel.adopt(&hook)? {
                missing.push(hook);
            }
        }
        if !missing.is_empty() || !entry_is_right {
            self.kernel.write_port(attachment, Asks::Learn)?;
        } else {
            self.kernel.write_station(attachment)?;
        }
        for hook in &missing {
            tracing::warn!(key = %attachment.port.key, program = hook.program.name(), "attached again");
            self.kernel.attach(hook)?;
        }
        Ok(!missing.is_empty() || !entry_is_right)
    }
}

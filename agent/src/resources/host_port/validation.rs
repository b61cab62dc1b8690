//! Whether a host port is free, and there is room for it. Two attachments never share one; that of all addresses conflicts with that of each address.

use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;

use shunt_agent_api::{AttachmentKey, BridgePort, PortMapping};
use shunt_dataplane::abi::MAX_MAPPINGS;

use crate::resources::{Node, Refusal};

impl Node {
    /// Refuses a host port that another attachment has, and more than there is room for.
    ///
    /// # Errors
    /// [`Refusal::PortTaken`], [`Refusal::TooManyPorts`].
    pub(crate) fn refuse_taken_ports(&self, port: &BridgePort) -> Result<(), Refusal> {
        self.refuse_too_many_ports(port)?;
        match self.taken_ports(port).next() {
            Some((mapping, owner)) => Err(Refusal::PortTaken { mapping, owner: owner.clone() }),
            None => Ok(()),
        }
    }

    /// The attachments that have a host port of this one's.
    pub(crate) fn owners_of_ports(&self, port: &BridgePort) -> BTreeSet<AttachmentKey> {
        self.taken_ports(port).map(|(_, owner)| owner.clone()).collect()
    }

    fn refuse_too_many_ports(&self, port: &BridgePort) -> Result<(), Refusal> {
        let asked = entries(port);
        if asked == 0 {
            return Ok(());
        }
        let room = MAX_MAPPINGS as usize;
        let free = room.saturating_sub(self.others(port).map(entries).sum());
        if asked > free { Err(Refusal::TooManyPorts { asked, free, room }) } else { Ok(()) }
    }

    /// The others that have host ports, if this one has any.
    fn others(&self, port: &BridgePort) -> impl Iterator<Item = &BridgePort> {
        let all = (!port.mappings.is_empty()).then(|| self.registry.with_mappings());
        all.into_iter().flatten().map(|other| &other.port).filter(|other| other.key != port.key)
    }

    /// A port's host ports that another attachment has.
    fn taken_ports(&self, port: &BridgePort) -> impl Iterator<Item = (PortMapping, &AttachmentKey)> {
        let mut mine: HashMap<_, Vec<PortMapping>> = HashMap::with_capacity(port.mappings.len());
        for mapping in &port.mappings {
            mine.entry((mapping.protocol, mapping.host_port)).or_default().push(*mapping);
        }
        let theirs = self
            .others(port)
            .flat_map(|other| other.mappings.iter().map(move |mapping| (mapping, &other.key)));
        theirs.filter_map(move |(theirs, owner)| {
            let same = mine.get(&(theirs.protocol, theirs.host_port))?;
            Some((*same.iter().find(|mine| mine.overlaps(theirs))?, owner))
        })
    }
}

/// How many entries of `MAPPINGS` a port's host ports take.
fn entries(port: &BridgePort) -> usize {
    let families = [IpAddr::is_ipv4, IpAddr::is_ipv6];
    let own: Vec<IpAddr> =
        families.into_iter().filter_map(|is_of| port.ips.iter().copied().find(is_of)).collect();
    port.mappings.iter().map(|mapping| own.iter().filter(|ip| mapping.is_of_family(**ip)).count()).sum()
}

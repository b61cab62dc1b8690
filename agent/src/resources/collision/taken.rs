//! What an attachment may not share with another one, and attachments that have it although their link is gone.

use std::collections::BTreeSet;

use shunt_agent_api::{AttachmentKey, BridgePort};
use shunt_dataplane::wire::address::Mac;

use crate::datapath::encode;
use crate::resources::port::difference;
use crate::resources::{Node, Refusal};

impl Node {
    /// Forgets attachments that are in a new port's way and whose link is gone: nobody has said so yet.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn forget_the_gone(&mut self, port: &BridgePort, mac: Mac) -> Result<(), Refusal> {
        let mut in_the_way: BTreeSet<AttachmentKey> = self.owners_of_ports(port);
        let station = self.datapath.station(&encode::station_key_of(port, mac))?;
        for ifindex in station.map(|station| station.ifindex).into_iter().chain([port.host.index]) {
            in_the_way.extend(self.registry.by_host(ifindex).map(|owner| owner.port.key.clone()));
        }
        let known = self.registry.get(&port.key).filter(|known| difference(&known.port, port).is_some());
        in_the_way.extend(known.map(|known| known.port.key.clone()));
        for ip in &port.ips {
            let owner = self.owner_of(port, *ip)?;
            in_the_way.extend(
                owner.and_then(|ifindex| self.registry.by_host(ifindex)).map(|it| it.port.key.clone()),
            );
        }
        self.forget_those_gone(in_the_way)
    }

    /// Forgets attachments that have one of a port's host ports and whose link is gone.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn forget_gone_owners_of_ports(&mut self, port: &BridgePort) -> Result<(), Refusal> {
        self.forget_those_gone(self.owners_of_ports(port))
    }

    fn forget_those_gone(&mut self, keys: BTreeSet<AttachmentKey>) -> Result<(), Refusal> {
        for key in keys {
            let Some(port) = self.registry.get(&key).map(|attachment| attachment.port.clone()) else {
                continue;
            };
            if self.is_gone(&port)? {
                self.forget(&key, "its link is gone");
            }
        }
        Ok(())
    }

    /// Two attachments never share a host end, nor a MAC address on one bridge: an FDB entry has one port.
    pub(crate) fn refuse_what_is_taken(&self, port: &BridgePort, mac: Mac) -> Result<(), Refusal> {
        let station = self.datapath.station(&encode::station_key_of(port, mac))?;
        let what = match port.vlan {
            Some(vlan) if vlan.within => format!("VLAN {} on {}", vlan.id, port.bridge.name),
            _ => format!("{} on {}", port.mac, port.bridge.name),
        };
        if self.is_gateways_mac(port.bridge.index, mac) {
            return Err(Refusal::Gateway {
                name: port.bridge.name.clone(),
                why: format!("of a VLAN has {}", port.mac),
            });
        }
        let owners =
            [(station.map(|station| station.ifindex), what), (Some(port.host.index), port.host.name.clone())];
        for (owner, what) in owners {
            let owner = owner.and_then(|ifindex| self.registry.by_host(ifindex));
            if let Some(owner) = owner {
                return Err(Refusal::Taken { what, owner: owner.port.key.clone() });
            }
        }
        Ok(())
    }
}

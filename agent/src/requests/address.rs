//! Gives an attachment its addresses in place, while traffic flows: an IPAM that sends from the interface is asked once it works.

use shunt_agent_api::{Attached, BridgePort};

use crate::registry::Attachment;
use crate::resources::change::Change;
use crate::resources::lease::drop_relative_lease_dir;
use crate::resources::port::difference;
use crate::resources::validation;
use crate::resources::{Node, Refusal};

impl Node {
    /// Gives an attachment the addresses of `port`, and what follows from them. Repeating a request changes nothing.
    ///
    /// # Errors
    /// [`Refusal`]: [`Refusal::Exists`] where anything else differs. What was in force still is, as far as the kernel allows.
    pub(crate) fn address(&mut self, port: BridgePort) -> Result<Attached, Refusal> {
        let (change, key) = (Change::begin("address"), port.key.clone());
        let wanted = format!("{:?}", port.ips);
        let addressed = self.address_unlogged(port);
        match &addressed {
            Ok(_) => change.made(&key, wanted),
            Err(refusal) => change.refused(&key, refusal),
        }
        addressed
    }

    fn address_unlogged(&mut self, port: BridgePort) -> Result<Attached, Refusal> {
        let mac = validation::port(&port)?;
        self.forget_the_gone(&port, mac)?;
        let Some(known) = self.registry.get(&port.key).cloned() else {
            return Err(Refusal::NotAttached(port.key));
        };
        let mut port = readdressed(&known.port, self.claimed(port)?);
        if let Some(differs) = difference(&known.port, &addressed_as(&known.port, &port)) {
            return Err(Refusal::Exists { key: port.key, differs });
        }
        self.refuse_what_is_occupied(&port, mac)?;
        self.refuse_taken_ports(&port)?;
        self.validate_gateway(&mut port)?;
        drop_relative_lease_dir(&mut port);
        let changed = Attachment { port, ..known.clone() };
        self.store.write(&changed.port)?;
        if let Err(refusal) = self.readdress(&known, &changed) {
            let restored =
                self.readdress(&changed, &known).and_then(|()| Ok(self.store.write(&known.port)?));
            if let Err(error) = restored {
                tracing::warn!(key = %known.port.key, %error, "cannot restore the previous addresses");
            }
            return Err(refusal);
        }
        self.tell_shadowed(&changed.port);
        self.tell_claimed(&changed.port);
        Ok(self.programs_of(&changed.port))
    }
}

/// Whether a known port and another one differ in their addresses, and what follows from them, alone.
pub(super) fn differs_in_addresses(known: &BridgePort, port: &BridgePort) -> bool {
    difference(known, &addressed_as(known, port)).is_none()
}

/// The port that is known with the addresses of `port`, and with what follows from them. The uplink has a note of the agent's.
fn readdressed(known: &BridgePort, port: BridgePort) -> BridgePort {
    let mut service = port.service;
    service.uplink.clone_from(&known.service.uplink);
    BridgePort { service, ..port }
}

/// `port` with the addresses that are known.
fn addressed_as(known: &BridgePort, port: &BridgePort) -> BridgePort {
    BridgePort {
        ips: known.ips.clone(),
        masquerade: known.masquerade.clone(),
        unmasqueraded: known.unmasqueraded.clone(),
        mappings: known.mappings.clone(),
        ..port.clone()
    }
}

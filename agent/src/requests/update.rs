//! Updates limits, host ports and unmasqueraded destinations of an attachment in place, while traffic flows.

use shunt_agent_api::{Attached, BridgePort};

use super::check::asked_of;
use crate::resources::port::difference;
use crate::resources::validation;
use crate::resources::{Node, Refusal};

impl Node {
    /// Gives an attachment the limits and the host ports of `port`, all of them or none, then its unmasqueraded destinations. One that is not there is attached.
    /// With `keeps_mappings` it keeps the host ports that it has.
    ///
    /// # Errors
    /// [`Refusal`]: [`Refusal::Exists`] where anything else differs. What was in force still is, as far as the kernel allows.
    pub(crate) fn update(&mut self, mut port: BridgePort, keeps_mappings: bool) -> Result<Attached, Refusal> {
        let known = self.registry.get(&port.key).map(|attachment| attachment.port.clone());
        if let Some(known) = known.as_ref().filter(|_| keeps_mappings) {
            port.mappings.clone_from(&known.mappings);
        }
        validation::port(&port)?;
        let asked = port.bandwidth.clone();
        let Some(known) = known.filter(|known| is_changeable(known, &port)) else {
            return self.attach(port);
        };
        self.forget_gone_owners_of_ports(&port)?;
        self.refuse_taken_ports(&port)?;
        if *asked_of(&known) != asked {
            self.limit(&port.key, asked)?;
        }
        if known.mappings != port.mappings
            && let Err(refusal) = self.map(&port.key, port.mappings.clone())
        {
            if let Err(error) = self.limit(&port.key, asked_of(&known).clone()) {
                tracing::warn!(key = %port.key, %error, "cannot restore the previous limits");
            }
            return Err(refusal);
        }
        if known.unmasqueraded != port.unmasqueraded {
            self.exempt_one(&port.key, &port.unmasqueraded)?;
        }
        Ok(self.programs_of(&port))
    }
}

/// Whether they differ in nothing that stays what it is as long as an attachment lives.
fn is_changeable(known: &BridgePort, port: &BridgePort) -> bool {
    let (bandwidth, mappings) = (known.bandwidth.clone(), known.mappings.clone());
    let unmasqueraded = known.unmasqueraded.clone();
    difference(known, &BridgePort { bandwidth, mappings, unmasqueraded, ..port.clone() }).is_none()
}

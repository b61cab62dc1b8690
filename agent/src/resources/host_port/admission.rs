//! Whether a host port is free. Two attachments never share one.

use shunt_agent_api::BridgePort;

use crate::resources::{Node, Refusal};

impl Node {
    /// Two attachments never share a host port. A host port of all addresses conflicts with that of each
    /// address.
    pub(crate) fn refuse_taken_ports(&mut self, port: &BridgePort) -> Result<(), Refusal> {
        if port.mappings.is_empty() {
            return Ok(());
        }
        let others = self.registry.attachments().filter(|other| other.port.key != port.key);
        let taken = others
            .flat_map(|other| other.port.mappings.iter().map(move |mapping| (mapping, &other.port)))
            .filter_map(|(theirs, owner)| {
                let mine = port.mappings.iter().find(|mine| mine.overlaps(theirs))?;
                Some((*mine, owner.clone()))
            })
            .collect::<Vec<_>>();
        for (mine, owner) in taken {
            if !self.is_gone(&owner)? {
                return Err(Refusal::PortTaken { mapping: mine, owner: owner.key });
            }
            self.forget(&owner.key, "its link is gone");
        }
        Ok(())
    }
}

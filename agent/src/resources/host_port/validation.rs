//! Whether a host port is free. Two attachments never share one; that of all addresses conflicts with that of each address.

use std::collections::BTreeSet;

use shunt_agent_api::{AttachmentKey, BridgePort, PortMapping};

use crate::resources::{Node, Refusal};

impl Node {
    /// Refuses a host port that another attachment has.
    ///
    /// # Errors
    /// [`Refusal::PortTaken`].
    pub(crate) fn refuse_taken_ports(&self, port: &BridgePort) -> Result<(), Refusal> {
        match self.taken_ports(port).next() {
            Some((mapping, owner)) => Err(Refusal::PortTaken { mapping, owner: owner.clone() }),
            None => Ok(()),
        }
    }

    /// The attachments that have a host port of this one's.
    pub(crate) fn owners_of_ports(&self, port: &BridgePort) -> BTreeSet<AttachmentKey> {
        self.taken_ports(port).map(|(_, owner)| owner.clone()).collect()
    }

    /// A port's host ports that another attachment has.
    fn taken_ports(&self, port: &BridgePort) -> impl Iterator<Item = (PortMapping, &AttachmentKey)> {
        let others =
            self.registry.attachments().map(|other| &other.port).filter(|other| other.key != port.key);
        let theirs = others.flat_map(|other| other.mappings.iter().map(move |mapping| (mapping, &other.key)));
        theirs.filter_map(|(theirs, owner)| {
            let mine = port.mappings.iter().find(|mine| mine.overlaps(theirs))?;
            Some((*mine, owner))
        })
    }
}

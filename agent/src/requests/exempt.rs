//! Changes which destinations see containers' own addresses, while traffic flows.
//!
//! A connection keeps the address that it began with. What the kernel tracks stays the kernel's, whatever the programs may begin now.

use shunt_agent_api::{AttachmentKey, BridgePort};

use crate::registry::Attachment;
use crate::resources::change::Change;
use crate::resources::validation;
use crate::resources::{Node, Refusal};

impl Node {
    /// Gives every masqueraded attachment of a network these destinations. Repeating a request changes nothing.
    ///
    /// # Errors
    /// [`Refusal`], the first; all other attachments have the new destinations.
    pub(crate) fn exempt(&mut self, network: &str, destinations: &[String]) -> Result<(), Refusal> {
        validation::unmasqueraded(destinations)?;
        let is_other = |port: &BridgePort| {
            port.key.network == network
                && !port.masquerade.is_empty()
                && port.unmasqueraded.as_slice() != destinations
        };
        let attachments = self.registry.attachments().map(|attachment| &attachment.port);
        let others: Vec<_> = attachments.filter(|port| is_other(port)).map(|port| port.key.clone()).collect();
        self.exempt_all(&others, destinations)
    }

    /// The same of one attachment.
    ///
    /// # Errors
    /// As [`Self::exempt`].
    pub(super) fn exempt_one(&mut self, key: &AttachmentKey, destinations: &[String]) -> Result<(), Refusal> {
        self.exempt_all(std::slice::from_ref(key), destinations)
    }

    fn exempt_all(&mut self, keys: &[AttachmentKey], destinations: &[String]) -> Result<(), Refusal> {
        if !keys.is_empty() && self.datapath.begins_masquerading {
            self.learn_masqueraded()?;
        }
        let mut failed = None;
        for key in keys {
            let change = Change::begin("exempt");
            match self.exempt_unlogged(key, destinations) {
                Ok(()) => change.made(key, format!("{} destinations", destinations.len())),
                Err(refusal) => {
                    change.refused(key, &refusal);
                    failed.get_or_insert(refusal);
                }
            }
        }
        // The programs leave to the kernel what is exempt before its rules say so: until then it masquerades.
        self.set_rules()?;
        failed.map_or(Ok(()), Err)
    }

    fn exempt_unlogged(&mut self, key: &AttachmentKey, destinations: &[String]) -> Result<(), Refusal> {
        let Some(known) = self.registry.get(key).cloned() else {
            return Err(Refusal::NotAttached(key.clone()));
        };
        let port = BridgePort { unmasqueraded: destinations.to_vec(), ..known.port.clone() };
        let changed = Attachment { port, ..known };
        self.store.write(&changed.port)?;
        self.registry.insert(changed.clone());
        Ok(self.datapath.write_masquerades(&changed)?)
    }
}

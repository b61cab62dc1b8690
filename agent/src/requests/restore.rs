//! FINALIZE: makes an attachment what its plugin takes it to be, in place. A restricted port keeps its programs meanwhile: they let
//! nothing through while their entry is missing, and stay if the agent dies in between.

use shunt_agent_api::{Attached, AttachmentKey, BridgePort};

use super::address::differs_in_addresses;
use super::check::as_seen;
use crate::registry::Attachment;
use crate::resources::port::difference;
use crate::resources::reconcile::{Cause, Resource};
use crate::resources::validation;
use crate::resources::{Node, Refusal};

impl Node {
    /// Attaches a port, or puts right what of its attachment is missing, altered, or attached with other facts.
    ///
    /// # Errors
    /// [`Refusal::Altered`] with what cannot be put right. What was attached before still is, as far as the kernel allows.
    pub(crate) fn restore(&mut self, port: BridgePort) -> Result<Attached, Refusal> {
        validation::port(&port)?;
        let Some(known) = self.registry.get(&port.key).cloned() else { return self.attach(port) };
        let port = as_seen(&known, &port);
        if difference(&known.port, &port).is_some() {
            match differs_in_addresses(&known.port, &port) {
                true => drop(self.address(port.clone())?),
                false => self.replace(&known, port.clone())?,
            }
        }
        self.put_all_right(&port.key)?;
        self.learn_unsure();
        self.check(&port)?;
        Ok(self.programs_of(&port))
    }

    fn replace(&mut self, known: &Attachment, port: BridgePort) -> Result<(), Refusal> {
        let (key, is_same_end) = (&known.port.key, known.port.host == port.host);
        if !is_same_end && !self.is_gone(&known.port)? {
            return Err(Refusal::Exists { key: key.clone(), differs: "host interface" });
        }
        if is_same_end && known.is_restricted() {
            self.leave_guarded(key);
        }
        self.take_out(key, "to be attached with other facts");
        let Err(refusal) = self.attach(port) else { return Ok(()) };
        if let Err(error) = self.attach(known.port.clone()) {
            tracing::warn!(%key, %error, "cannot attach it again as it was");
        }
        Err(refusal)
    }

    /// Puts right the bridge, the port on it, and what they need.
    fn put_all_right(&mut self, key: &AttachmentKey) -> Result<(), Refusal> {
        let Some(attachment) = self.registry.get(key).cloned() else { return Ok(()) };
        if let Some(bridge) = self.registry.bridge(attachment.port.bridge.index).cloned() {
            self.put_right(&bridge)?;
        }
        self.put_right(&attachment)?;
        self.desired_links().iter().for_each(|resource| self.reconcile(&**resource));
        Ok(())
    }

    fn put_right(&mut self, resource: &dyn Resource) -> Result<(), Refusal> {
        let findings = resource.observe(self)?;
        if findings.is_empty() { Ok(()) } else { resource.apply(self, Cause::Repair(&findings)) }
    }
}

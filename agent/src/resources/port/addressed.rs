//! Gives a port other addresses while traffic flows.

use crate::datapath::encode;
use crate::registry::{Attachment, Trunk};
use crate::resources::{Failures, Node, Refusal};

impl Node {
    /// Replaces a port's addresses, and what follows from them. What is new is there before what is old goes, and the source guard knows
    /// an address before a host port leads to it.
    ///
    /// # Errors
    /// The kernel's; the reverse change restores what was there.
    pub(crate) fn readdress(&mut self, from: &Attachment, to: &Attachment) -> Result<(), Refusal> {
        self.heed_before(&to.port);
        let (heeded, opened) = (self.heeds(&to.port), self.opens_next(&to.port, from));
        let to = &Attachment { heeded, opened, ..to.clone() };
        self.registry.insert(to.clone());
        self.build_gateway(&to.port)?;
        self.note_former(from);
        if self.may_have_kernel_flows(to) {
            self.require_flow_lookup(to)?;
        }
        self.datapath.end_freshness(to)?;
        self.datapath.complete_addresses(to)?;
        if let Some(trunk) = Trunk::of(&to.port) {
            self.tell_parent(&trunk)?;
        }
        // As in `build`.
        if to.is_masqueraded() && self.datapath.begins_masquerading {
            self.look_for_external_filters();
        }
        self.datapath.write_masquerades(to)?;
        match from.is_translated() || to.is_translated() {
            true => self.remap(from, to)?,
            false => self.set_rules()?,
        }
        for error in self.erase_old_addresses(from, to) {
            tracing::warn!(key = %from.port.key, %error, "cannot remove an address");
        }
        Ok(())
    }

    /// Removes what a port had of addresses that it no longer has. Continues after errors.
    fn erase_old_addresses(&mut self, from: &Attachment, to: &Attachment) -> Failures {
        let mut failures = Failures::default();
        let kept: Vec<_> = encode::address_keys(to).collect();
        for key in encode::address_keys(from).filter(|key| !kept.contains(key)) {
            failures.note(self.datapath.erase_address(key, from.port.host.index));
        }
        failures.extend(self.datapath.erase_old_masquerades(from, to));
        failures.extend(self.leave_gateway(&from.port));
        if from.is_masqueraded() {
            self.sweep_flows_soon();
        }
        failures
    }
}

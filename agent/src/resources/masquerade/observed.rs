//! What of a port's masquerading is missing or altered.

use std::net::IpAddr;

use crate::datapath::maps::lookup;
use crate::datapath::{encode, in_map};
use crate::kernel::KernelError;
use crate::registry::Attachment;
use crate::resources::{Finding, Node};

impl Node {
    /// Lists missing or altered masqueraded addresses.
    ///
    /// # Errors
    /// The kernel cannot say.
    pub(crate) fn audit_masquerades(&self, attachment: &Attachment) -> Result<Vec<Finding>, KernelError> {
        let mut findings = Vec::new();
        let entries = encode::masquerades(attachment).filter(|_| self.datapath.begins_masquerading);
        for (key, masquerade) in entries {
            let entry = lookup(&self.datapath.maps.masquerades, &key).map_err(in_map("MASQUERADES"))?;
            if entry != Some(masquerade) {
                let ip = IpAddr::from(key.address.octets()).to_canonical();
                findings.push(Finding::entry("MASQUERADES", ip, entry.as_ref()));
            }
        }
        Ok(findings)
    }
}

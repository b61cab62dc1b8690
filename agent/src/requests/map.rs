//! Host ports of attachments. Two attachments never share one.

use shunt_agent_api::{Attached, AttachmentKey, BridgePort, PortMapping};

use crate::datapath::programs;
use crate::registry::Attachment;
use crate::resources::change::Change;
use crate::resources::validation;
use crate::resources::{Node, Refusal};

impl Node {
    /// Replaces an attachment's host ports while traffic flows; an empty list removes them.
    ///
    /// # Errors
    /// [`Refusal`]; the previous host ports are restored as far as the kernel allows.
    pub(crate) fn map(
        &mut self,
        key: &AttachmentKey,
        mappings: Vec<PortMapping>,
    ) -> Result<Attached, Refusal> {
        let change = Change::begin("map");
        let wanted = listed(&mappings);
        let mapped = self.map_unlogged(key, mappings);
        match &mapped {
            Ok(_) => change.made(key, wanted),
            Err(refusal) => change.refused(key, refusal),
        }
        mapped
    }

    fn map_unlogged(&mut self, key: &AttachmentKey, mappings: Vec<PortMapping>) -> Result<Attached, Refusal> {
        let Some(known) = self.registry.get(key).cloned() else {
            return Err(Refusal::NotAttached(key.clone()));
        };
        let port = BridgePort { mappings, ..known.port.clone() };
        validation::port(&port)?;
        self.heed_before(&port);
        let changed = Attachment { opened: self.opens_next(&port, &known), port, ..known.clone() };
        self.forget_gone_owners_of_ports(&changed.port)?;
        self.refuse_taken_ports(&changed.port)?;
        let done = self.remap(&known, &changed).and_then(|()| Ok(self.store.write(&changed.port)?));
        if let Err(refusal) = done {
            if let Err(error) = self.remap(&changed, &known) {
                tracing::warn!(%key, %error, "cannot restore the previous host ports");
            }
            return Err(refusal);
        }
        self.tell_shadowed(&changed.port);
        Ok(self.programs_of(&changed.port))
    }

    /// Compares an attachment's host ports with the state file and the kernel.
    ///
    /// # Errors
    /// [`Refusal::Altered`] with everything that is missing or altered.
    pub(crate) fn check_map(&mut self, key: &AttachmentKey, mappings: &[PortMapping]) -> Result<(), Refusal> {
        let Some(attachment) = self.registry.get(key).cloned() else {
            return Err(Refusal::NotAttached(key.clone()));
        };
        let findings = self.audit_mappings(&attachment)?;
        let mut findings: Vec<_> = findings.iter().map(ToString::to_string).collect();
        if !are_as_asked(&attachment.port.mappings, mappings) {
            findings.push("it is attached with another list of port mappings".to_owned());
        }
        if !mappings.is_empty() && !self.datapath.is_attached(&programs::of_translation(&attachment))? {
            findings
                .push(format!("the program of host ports is not attached to {}", attachment.port.host.name));
        }
        if findings.is_empty() { Ok(()) } else { Err(Refusal::Altered { key: key.clone(), findings }) }
    }
}

/// A list for the log.
fn listed(mappings: &[PortMapping]) -> String {
    /// As many are named.
    const MOST: usize = 8;
    let named: Vec<_> = mappings.iter().take(MOST).map(ToString::to_string).collect();
    match mappings.len().saturating_sub(MOST) {
        0 => format!("[{}]", named.join(", ")),
        more => format!("[{} and {more} more]", named.join(", ")),
    }
}

/// Whether an attachment has the requested host ports. Older plugins requested both families where one was meant, and knew no
/// [`PortMapping::keeps_source`].
pub(crate) fn are_as_asked(had: &[PortMapping], asked: &[PortMapping]) -> bool {
    let is_as_asked = |(had, asked): (&PortMapping, &PortMapping)| {
        let asked = &PortMapping { keeps_source: had.keeps_source && asked.keeps_source, ..*asked };
        had == asked || (asked.address().is_none() && *had == PortMapping { host_ip: None, ..*asked })
    };
    had.len() == asked.len() && had.iter().zip(asked).all(is_as_asked)
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use shunt_agent_api::Protocol;

    use super::*;

    #[test]
    fn one_familys_host_port_that_is_written_down_as_both_families_is_as_asked() {
        let at = |host_ip: Option<[u8; 4]>| PortMapping {
            protocol: Protocol::Tcp,
            host_ip: host_ip.map(IpAddr::from),
            host_port: 8080,
            container_port: 80,
            masquerade: false,
            keeps_source: false,
        };
        for (had, asked, is_as_asked) in [
            (None, Some([0; 4]), true),
            (Some([0; 4]), Some([0; 4]), true),
            (Some([0; 4]), None, false),
            (None, Some([192, 0, 2, 1]), false),
        ] {
            assert_eq!(are_as_asked(&[at(had)], &[at(asked)]), is_as_asked, "{had:?} {asked:?}");
        }
        assert!(!are_as_asked(&[at(None)], &[]));
        let keeps = PortMapping { keeps_source: true, ..at(None) };
        assert!(are_as_asked(&[at(None)], &[keeps]), "from a plugin that did not know it");
        assert!(!are_as_asked(&[keeps], &[at(None)]));
    }
}

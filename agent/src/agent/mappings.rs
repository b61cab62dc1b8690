//! Host ports of attachments. Two attachments never share one.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use shunt_agent_api::{Attached, AttachmentKey, BridgePort, PortMapping};
use shunt_netlink::sock_diag::listeners;

use super::change::Change;
use super::{Agent, Refusal, admit};
use crate::kernel::mappings::number;
use crate::registry::Attachment;

impl Agent {
    /// Replaces an attachment's host ports while traffic flows; an empty list removes them.
    ///
    /// # Errors
    /// [`Refusal`]; the previous host ports are restored as far as the kernel allows.
    pub fn map(&mut self, key: &AttachmentKey, mappings: Vec<PortMapping>) -> Result<Attached, Refusal> {
        let change = Change::begin("map");
        let wanted = format!("{mappings:?}");
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
        let changed = Attachment { port: BridgePort { mappings, ..known.port.clone() }, ..known.clone() };
        admit::port(&changed.port)?;
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
    pub fn check_map(&mut self, key: &AttachmentKey, mappings: &[PortMapping]) -> Result<(), Refusal> {
        let Some(attachment) = self.registry.get(key).cloned() else {
            return Err(Refusal::NotAttached(key.clone()));
        };
        let findings = self.kernel.audit_mappings(&attachment)?;
        let mut findings: Vec<_> = findings.iter().map(ToString::to_string).collect();
        if !are_as_asked(&attachment.port.mappings, mappings) {
            findings.push("it is attached with another list of port mappings".to_owned());
        }
        if !mappings.is_empty() && !self.kernel.is_attached(&attachment.behind())? {
            findings
                .push(format!("the program of host ports is not attached to {}", attachment.port.host.name));
        }
        if findings.is_empty() { Ok(()) } else { Err(Refusal::Altered { key: key.clone(), findings }) }
    }

    /// Two attachments never share a host port. A host port of all addresses conflicts with that of each
    /// address.
    pub(super) fn refuse_taken_ports(&mut self, port: &BridgePort) -> Result<(), Refusal> {
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

    /// Warns about listening sockets of the node that a host port shadows.
    pub(super) fn tell_shadowed(&self, port: &BridgePort) {
        let mut listening = BTreeMap::new();
        for mapping in &port.mappings {
            let protocol = number(mapping.protocol);
            // No warning if the kernel cannot list sockets.
            let all = listening.entry(protocol).or_insert_with(|| listeners(protocol).unwrap_or_default());
            let shadows = |at: &&SocketAddr| {
                let ip = at.ip().to_canonical();
                // A socket on `::` may accept IPv4, too.
                let hears = ip.is_unspecified() && (ip.is_ipv6() || mapping.is_of_family(ip));
                at.port() == mapping.host_port && (hears || mapping.is_at(ip))
            };
            if let Some(at) = all.iter().find(shadows) {
                tracing::warn!(
                    key = %port.key, %mapping, listener = %at.ip(),
                    "a socket of the node listens on this host port; its connections go to the container from now on"
                );
            }
        }
    }

    /// Replies are translated before the first request can arrive, and until after the last. Entries that are
    /// kept are never removed in between: the node would answer a packet with a reset.
    fn remap(&mut self, from: &Attachment, to: &Attachment) -> Result<(), Refusal> {
        self.registry.insert(to.clone());
        let (was, is) = (from.is_translated(), to.is_translated());
        if is && !was {
            self.kernel.attach(&to.behind())?;
        }
        self.kernel.write_mapped(to)?;
        self.kernel.write_mappings(to)?;
        self.set_rules()?;
        for error in self.kernel.erase_old_mappings(from, to) {
            tracing::warn!(key = %from.port.key, %error, "cannot remove a host port");
        }
        if was && !is {
            self.kernel.detach(&from.behind())?;
        }
        self.update_nat_ingress();
        self.follow_mappings(&from.port.mappings, &to.port.mappings);
        Ok(())
    }
}

/// Whether an attachment has the requested host ports. Older plugins requested both families where one was
/// meant.
pub(super) fn are_as_asked(had: &[PortMapping], asked: &[PortMapping]) -> bool {
    let is_as_asked = |(had, asked): (&PortMapping, &PortMapping)| {
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
    }
}

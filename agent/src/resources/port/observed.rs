//! What of a port is missing or altered.

use shunt_agent_api::Interface;
use shunt_dataplane::abi::vlan::Member;
use shunt_dataplane::abi::{AFFINITY_APART, Port, STATION_APART, Station};

use crate::datapath::maps::lookup;
use crate::datapath::{encode, in_map, programs};
use crate::kernel::KernelError;
use crate::registry::Attachment;
use crate::resources::{Finding, Node, Refusal};

impl Node {
    /// Lists the faults of an attachment. Before the host end became a port, a missing bridge is no fault.
    pub(crate) fn audit(&mut self, attachment: &Attachment) -> Result<Vec<Finding>, Refusal> {
        let mut findings = self.audit_programs_and_place(attachment)?;
        let is_due = self.repairs.is_due(attachment);
        if is_due {
            findings.extend(self.audit_mappings(attachment)?);
        }
        if !self.repairs.in_service.contains_key(&attachment.port.host.index) {
            match findings.iter().position(|finding| matches!(finding, Finding::Master { .. })) {
                Some(position) => _ = findings.remove(position),
                None => self.notice_service(attachment)?,
            }
        }
        if self.has_lost_its_station(attachment, &findings)? {
            let Interface { name: host, .. } = attachment.port.host.clone();
            findings.push(Finding::Station { host, bridge: attachment.port.bridge.name.clone() });
        }
        // A container without its namespace sends nothing.
        let limits = self.audit_limits(attachment).unwrap_or_default();
        findings.extend(limits.into_iter().map(Finding::Limit));
        if is_due && !self.store.holds(&attachment.port) {
            findings.push(Finding::StateFile);
        }
        Ok(findings)
    }

    /// Whether the bridge has lost its static FDB entry of the container. A host end that is no port is
    /// another fault.
    fn has_lost_its_station(
        &mut self,
        attachment: &Attachment,
        findings: &[Finding],
    ) -> Result<bool, Refusal> {
        let (host, bridge) = (attachment.port.host.index, attachment.port.bridge.index);
        let Some((mac, is_fixed)) = attachment.known_station().filter(|_| attachment.port.vlan.is_none())
        else {
            return Ok(false);
        };
        if !self.repairs.in_service.contains_key(&host)
            || findings.iter().any(|finding| matches!(finding, Finding::Master { .. }))
        {
            return Ok(false);
        }
        if self.kernel.has_station(bridge, host, mac, is_fixed)? {
            self.repairs.stationed.insert(host);
            return Ok(false);
        }
        Ok(self.repairs.stationed.contains(&host) || attachment.port.restrictions.mac_check)
    }

    fn notice_service(&mut self, attachment: &Attachment) -> Result<(), Refusal> {
        let bridge = Some(attachment.port.bridge.index);
        if let Some(link) = self.kernel.link(attachment.port.host.index)?.filter(|link| link.master == bridge)
        {
            self.repairs.serves(&link);
        }
        Ok(())
    }

    /// Lists what of a port is missing or altered.
    ///
    /// # Errors
    /// The kernel cannot say.
    pub(crate) fn audit_port(&mut self, attachment: &Attachment) -> Result<Vec<Finding>, KernelError> {
        let mut findings = self.audit_programs_and_place(attachment)?;
        findings.extend(self.audit_mappings(attachment)?);
        Ok(findings)
    }

    /// Its entry in `PORTS`, and its station: either may be apart only with the other.
    fn audit_place(&self, attachment: &Attachment) -> Result<Vec<Finding>, KernelError> {
        let mut findings = Vec::new();
        let host = &attachment.port.host;
        let entry =
            lookup(&self.datapath.maps.ports, &encode::port_key(host.index)).map_err(in_map("PORTS"))?;
        let is_right = |entry: &Port| encode::as_written(*entry) == encode::port(attachment, entry.affinity);
        if !entry.as_ref().is_some_and(is_right) {
            findings.push(Finding::entry("PORTS", &host.name, entry.as_ref()));
        }
        let station =
            lookup(&self.datapath.maps.stations, &encode::station_key(attachment)).map_err(in_map("FDB"))?;
        let is_apart = entry.is_some_and(|entry| entry.affinity == AFFINITY_APART);
        let disagrees = |station: Station| (station.flags & STATION_APART != 0) != is_apart;
        let is_bridged = encode::station_key(attachment).vid == 0;
        if station.map(encode::in_place) != Some(encode::station(attachment))
            || is_bridged && station.is_some_and(disagrees)
        {
            findings.push(Finding::entry("FDB", &attachment.port.mac, station.as_ref()));
        }
        Ok(findings)
    }

    /// The same without its host ports.
    fn audit_programs_and_place(&mut self, attachment: &Attachment) -> Result<Vec<Finding>, KernelError> {
        let host = &attachment.port.host;
        let Some(link) = self.kernel.link(host.index)?.filter(|link| link.name == host.name) else {
            return Ok(vec![Finding::Link(host.name.clone())]);
        };
        let mut findings = Vec::new();
        let is_port = attachment.port.vlan.is_none();
        if is_port && link.master != Some(attachment.port.bridge.index) {
            findings.push(Finding::Master {
                host: host.name.clone(),
                bridge: attachment.port.bridge.name.clone(),
            });
        }
        let bridge = attachment.port.bridge.name.clone();
        // A port that is down is still being set up.
        if is_port && link.master.is_some() && link.up && !attachment.is_served_by(&link) {
            let expected = attachment.expected_flags(&link);
            findings.push(Finding::Flags {
                host: host.name.clone(),
                bridge,
                expected,
                found: link.port_flags,
            });
        }
        findings.extend(self.audit_place(attachment)?);
        for (key, ip) in encode::address_keys(attachment).zip(encode::addresses(attachment)) {
            let owner = lookup(&self.datapath.maps.addresses, &key).map_err(in_map("ADDRESSES"))?;
            if !self.datapath.may_own(attachment, owner)? {
                findings.push(Finding::entry("ADDRESSES", ip, owner.as_ref()));
            }
        }
        findings.extend(self.audit_masquerades(attachment)?);
        self.audit_membership(attachment, &mut findings)?;
        for hook in programs::of_port(attachment) {
            findings.extend(self.audit_program(&hook)?);
        }
        Ok(findings)
    }

    /// Lists what of a port's membership is missing or altered.
    fn audit_membership(
        &mut self,
        attachment: &Attachment,
        findings: &mut Vec<Finding>,
    ) -> Result<(), KernelError> {
        if !attachment.is_flooded_to() {
            return Ok(());
        }
        let host = &attachment.port.host;
        if let Some(wanted) = encode::tagged_vlans(attachment) {
            let tagged = lookup(&self.datapath.maps.tagged, &encode::port_key(host.index))
                .map_err(in_map("TAGGED"))?;
            if tagged != Some(wanted) {
                findings.push(Finding::entry("TAGGED", &host.name, tagged.as_ref()));
            }
        }
        let members = self.datapath.members(attachment.port.bridge.index).map_err(in_map("MEMBERS"))?;
        if !members.contains(&host.index) {
            findings.push(Finding::entry("MEMBERS", &host.name, None::<&Member>));
        }
        Ok(())
    }

    /// Lists missing or altered limits, each as a clause.
    ///
    /// # Errors
    /// The kernel cannot say.
    pub(crate) fn audit_limits(&mut self, attachment: &Attachment) -> Result<Vec<String>, KernelError> {
        let mut findings = self.kernel.audit_limits(&attachment.port)?;
        if !self.datapath.has_subnets(attachment)? {
            findings.push("an entry of its limit in SUBNETS is missing".to_owned());
        }
        for (slot, policer) in encode::policers(attachment) {
            if policer != self.datapath.policer(slot)? {
                findings.push("the entry of its limit in POLICERS is altered".to_owned());
            }
        }
        Ok(findings)
    }
}

//! The agent's health: whether an ADD would succeed, and warnings for the operator.

use shunt_agent_api::AuditReport;

use crate::datapath::DatapathError;
use crate::logging;
use crate::resources::Gravity;
use crate::resources::{Node, Refusal};

impl Node {
    /// Why every ADD would fail; empty if one that asks for nothing special would succeed.
    pub(crate) fn obstacles(&self) -> Vec<String> {
        let store = self.store.probe().err().map(|error| error.to_string());
        let pins = self.datapath.pinned().err().map(|error| error.to_string());
        let (_, free) = self.registry.slots.count();
        let full = (free == 0).then(|| DatapathError::Full.to_string());
        store.into_iter().chain(pins).chain(full).collect()
    }

    /// What is wrong: the obstacles of every ADD, and faults of single attachments and resources.
    pub(crate) fn reasons(&self) -> Vec<String> {
        let faults = self.repairs.remarks(Gravity::Fault);
        let reasons = self.obstacles().into_iter().chain(faults).chain(self.orphan_reasons());
        reasons.chain(self.unattached_reasons()).collect()
    }

    /// What is altered and cannot be put back.
    pub(crate) fn unrepaired(&self) -> u64 {
        let count = |gravity| self.repairs.remarks(gravity).count() as u64;
        count(Gravity::Fault) + count(Gravity::Warning)
    }

    /// Warnings, although an ADD would succeed.
    pub(crate) fn known_warnings(&self) -> Vec<String> {
        let aside = self.aside.iter().map(|path| format!("a state file was set aside: {}", path.display()));
        let aside = aside.chain(self.unreadable.iter().map(ToString::to_string));
        let full =
            self.flows_are_full().into_iter().chain(self.shares_are_used()).chain(self.uplinks_are_full());
        let full = full.chain(self.containers_apart());
        let beyond = self.addresses_beyond().into_iter().chain(self.ways_out_beyond());
        let lost = logging::lost();
        let lost =
            (lost > 0).then(|| format!("{lost} log lines were lost: nobody reads standard error in time"));
        let warnings = self.warnings.iter().chain(self.remarks.values()).cloned().chain(lost).chain(beyond);
        let unrepaired = self.repairs.remarks(Gravity::Warning);
        let warnings = warnings.chain(aside).chain(full).chain(unrepaired).chain(self.relocation_warnings());
        warnings.chain(self.external_filter_warnings()).collect()
    }

    /// Compares everything with the kernel and with the state directory.
    ///
    /// # Errors
    /// The kernel cannot say.
    pub(crate) fn audit_all(&mut self) -> Result<AuditReport, Refusal> {
        self.reattach_orphans();
        let mut findings: Vec<_> = self.reasons();
        let mut refused = Vec::new();
        for desired in [
            Self::desired_basis,
            Self::desired_ports,
            Self::desired_bridges,
            Self::desired_links,
            Self::desired_leases,
        ] {
            for resource in desired(self) {
                let (name, gravity) = (resource.name(), resource.gravity());
                match resource.observe(self) {
                    Ok(wrong) => findings.extend(wrong.iter().map(|finding| format!("{name}: {finding}"))),
                    Err(why) if gravity == Gravity::Warning => refused.push(format!("{name}: {why}")),
                    Err(why) => return Err(why),
                }
            }
        }
        findings.extend(self.audit_container_ends()?);
        let mut warnings = self.external_filter_warnings();
        warnings.extend(refused);
        Ok(AuditReport { consistent: findings.is_empty(), findings, warnings })
    }
}

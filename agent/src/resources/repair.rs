//! Repairs entries, programs, bridge ports and state files that somebody else has changed.
//!
//! Netlink reports changes of bridge ports, FDB entries and qdiscs at once. Removed map entries and state files are found by a periodic
//! check: once a second, for [`BUDGET`] at most, in turn; programs more often (`programs.rs`). An operator's intent is respected: a link
//! that is down stays down, and only the plugin creates bridges.

use std::time::Instant;

use shunt_agent_api::{AttachmentKey, EventKind};

use crate::resources::Finding;
use crate::resources::{Node, Refusal};

impl Node {
    /// Repairs, checks again, and logs the outcome once.
    pub(crate) fn repair_findings(
        &mut self,
        name: &str,
        key: Option<&AttachmentKey>,
        ifname: &str,
        findings: Result<Vec<Finding>, Refusal>,
        repair: impl FnOnce(&mut Self, &[Finding]) -> Result<Vec<Finding>, Refusal>,
    ) {
        let begun = Instant::now();
        let wrong = match &findings {
            Ok(findings) if findings.is_empty() => return self.repairs.resolve(name),
            Ok(findings) => joined(findings),
            Err(error) => error.to_string(),
        };
        if !self.repairs.may_repair(name) {
            self.repairs.deferred.extend(key.cloned());
            return;
        }
        for finding in findings.iter().flatten().filter(|finding| matches!(finding, Finding::Program(_))) {
            self.events.tell(EventKind::ProgramLost, key, ifname, finding.to_string());
        }
        let left = match findings.and_then(|findings| repair(self, &findings)) {
            Ok(left) if left.is_empty() => {
                self.repairs.count += 1;
                self.repairs.faults.remove(name);
                tracing::warn!(what = name, wrong, took = ?begun.elapsed(), "repaired");
                return self.events.tell(EventKind::Repair, key, ifname, wrong);
            }
            Ok(left) => left.iter().map(Finding::to_string).collect(),
            Err(error) => vec![error.to_string()],
        };
        if self.repairs.faults.get(name) != Some(&left) {
            tracing::error!(what = name, wrong, left = left.join("; "), "cannot be repaired");
            self.repairs.faults.insert(name.to_owned(), left);
        }
    }
}

fn joined(findings: &[Finding]) -> String {
    findings.iter().map(Finding::to_string).collect::<Vec<_>>().join("; ")
}

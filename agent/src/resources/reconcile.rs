//! The loop over resources: what is observed is compared with what is desired, and what is missing is applied.
//!
//! Netlink reports changes of bridge ports, FDB entries and qdiscs at once; the rest is looked at each second. An operator's intent is
//! respected: a link that is down stays down, and only the plugin creates bridges.

use std::time::Instant;

use shunt_agent_api::{AttachmentKey, EventKind};

use super::gravity::Gravity;
use super::node::Entries;
use super::{Finding, Node, Refusal};

/// Why a resource is applied.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cause<'a> {
    /// An attachment needs it that nothing has been done for.
    New,
    /// The agent has started. These are the entries in `PORTS` that an earlier one left.
    Start(&'a Entries),
    /// These things are missing or altered.
    Repair(&'a [Finding]),
}

/// A thing that is desired on the node.
pub(crate) trait Resource {
    /// Its name in logs and in the status.
    fn name(&self) -> String;

    /// What it means that it cannot be repaired.
    fn gravity(&self) -> Gravity {
        Gravity::Fault
    }

    /// The interface that its events name.
    fn ifname(&self) -> &str {
        ""
    }

    /// The attachment that its events name.
    fn key(&self) -> Option<&AttachmentKey> {
        None
    }

    /// Lists what of it is missing or altered.
    ///
    /// # Errors
    /// The kernel cannot say.
    fn observe(&self, node: &mut Node) -> Result<Vec<Finding>, Refusal>;

    /// The same, without what is missing only for a moment.
    ///
    /// # Errors
    /// The kernel cannot say.
    fn observe_patiently(&self, node: &mut Node) -> Result<Vec<Finding>, Refusal> {
        self.observe(node)
    }

    /// Makes it what is desired, whatever of it is there.
    ///
    /// # Errors
    /// The kernel's; some of it may have been made.
    fn apply(&self, node: &mut Node, cause: Cause<'_>) -> Result<(), Refusal>;

    /// Whether nothing can be applied: by default without its link, whose deletion is an event of its own.
    fn is_beyond_repair(&self, _node: &mut Node, findings: &[Finding]) -> bool {
        matches!(findings, [Finding::Link(_)])
    }
}

impl Node {
    /// Takes over what an earlier agent made. A failure is a warning: other resources do not depend on it.
    pub(crate) fn take_over(&mut self, resource: &dyn Resource, entries: &Entries) {
        if let Err(error) = resource.apply(self, Cause::Start(entries)) {
            self.warn(format!("{}: cannot take over its programs: {error}", resource.name()));
        }
    }

    /// Applies a resource that is needed from now on beside others. A failure is in the status, and repaired by [`Self::reconcile`].
    pub(crate) fn begin(&mut self, resource: &dyn Resource) {
        if let Err(error) = resource.apply(self, Cause::New) {
            let what = (resource.gravity(), resource.name());
            tracing::warn!(what = what.1, %error, "cannot be applied");
            self.repairs.faults.insert(what, vec![error.to_string()]);
        }
    }

    /// A resource is needed no more: nothing is wrong with it.
    pub(crate) fn resolve(&mut self, resource: &dyn Resource) {
        self.repairs.resolve(&(resource.gravity(), resource.name()));
    }

    /// Compares a resource with the kernel, repairs it, compares again, and logs the outcome once.
    pub(crate) fn reconcile(&mut self, resource: &dyn Resource) {
        if self.repairs.is_off() {
            return;
        }
        let (begun, key) = (Instant::now(), resource.key());
        let what = (resource.gravity(), resource.name());
        let findings = resource.observe_patiently(self);
        let wrong = match &findings {
            Ok(findings) if findings.is_empty() => return self.repairs.resolve(&what),
            Ok(findings) if resource.is_beyond_repair(self, findings) => return,
            Ok(findings) => joined(findings),
            Err(error) => error.to_string(),
        };
        self.repairs.alarm();
        if !self.repairs.may_repair(&what) {
            self.repairs.deferred.extend(key.cloned());
            return;
        }
        for finding in findings.iter().flatten().filter(|finding| matches!(finding, Finding::Program(_))) {
            self.tell_found(EventKind::ProgramLost, resource, finding.to_string());
        }
        let applied = findings.and_then(|findings| resource.apply(self, Cause::Repair(&findings)));
        let left = match applied.and_then(|()| resource.observe(self)) {
            Ok(left) if left.is_empty() => {
                self.repairs.count += 1;
                self.repairs.resolve(&what);
                tracing::warn!(what = what.1, wrong, took = ?begun.elapsed(), "repaired");
                return self.tell_found(EventKind::Repair, resource, wrong);
            }
            Ok(left) => left.iter().map(Finding::to_string).collect(),
            Err(error) => vec![error.to_string()],
        };
        if self.repairs.faults.get(&what) != Some(&left) {
            tracing::error!(what = what.1, wrong, left = left.join("; "), "cannot be repaired");
            self.repairs.faults.insert(what, left);
        }
    }

    /// Sends an event of a resource. That of an attachment may be on another interface than the attachment's.
    fn tell_found(&self, kind: EventKind, resource: &dyn Resource, detail: String) {
        let Some(key) = resource.key() else { return self.events.tell(kind, resource.ifname(), detail) };
        let port = self.registry.get(key).map(|known| &known.port);
        let port = port.or_else(|| self.orphaned_port(key));
        self.events.tell_at(kind, key, port.and_then(|port| port.pod.as_ref()), resource.ifname(), detail);
    }
}

fn joined(findings: &[Finding]) -> String {
    findings.iter().map(Finding::to_string).collect::<Vec<_>>().join("; ")
}

//! What the agent remembers between two checks: repairs, and faults that remain.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::time::{Duration, Instant};

use shunt_agent_api::AttachmentKey;
use shunt_netlink::bridge::PortFlags;
use shunt_netlink::link::Link;

use super::Finding;
use super::gravity::Gravity;
use crate::failpoints;
use crate::registry::{Attachment, port_flags};

/// The period for at most [`FEW`] repairs of one object: somebody else may be changing it.
const RESPITE: Duration = Duration::from_millis(900);
const FEW: u32 = 3;

/// How long a bridge may lack an address: replacing one removes it first.
const ADDRESS_RESPITE: Duration = Duration::from_millis(200);

/// More host ports of one attachment are compared rarely.
const MANY_PORTS: usize = 1_024;
const RARELY: Duration = Duration::from_secs(60);

/// How long more is looked for after something was wrong: whoever has damaged one thing may have damaged others.
const ALARM: Duration = Duration::from_secs(10);

/// An object, by what its faults mean and by its name.
pub(crate) type Named = (Gravity, String);

/// State between two checks.
#[derive(Debug, Default)]
pub(crate) struct Repairs {
    /// Whether repairs are disabled.
    off: bool,
    /// Repairs since the start.
    pub(crate) count: u64,
    /// What could not be repaired, per object.
    pub(crate) faults: BTreeMap<Named, Vec<String>>,
    /// Bridge port flags per host end, since it became a port. The plugin attaches a host end before it
    /// enslaves it.
    pub(crate) in_service: HashMap<u32, PortFlags>,
    /// Host ends whose bridge has a static FDB entry for the container. The creator of the port adds it.
    pub(crate) stationed: HashSet<u32>,
    /// Host ends with repaired programs or entries: the kernel may have begun flows meanwhile.
    pub(crate) unsure: HashSet<u32>,
    /// Host ends that are being attached while their containers are at work.
    pub(crate) in_use: HashSet<u32>,
    /// Attachments whose repair was postponed.
    pub(crate) deferred: BTreeSet<AttachmentKey>,
    /// Recent repairs per object: since when, and how many.
    repaired: HashMap<Named, (Instant, u32)>,
    /// When a bridge was first found without an address, by ifindex.
    pub(crate) unaddressed: HashMap<u32, Instant>,
    /// The attachment whose programs were checked last.
    pub(crate) watched: Option<AttachmentKey>,
    /// The attachment that was checked last.
    pub(crate) last: Option<AttachmentKey>,
    /// When the host ports of attachments with many were last compared, by host end.
    compared: HashMap<u32, Instant>,
    /// When something was last found wrong.
    alarmed: Option<Instant>,
}

impl Repairs {
    pub(crate) fn new(repairs: bool) -> Self {
        Self { off: !repairs, ..Self::default() }
    }

    /// Something is wrong.
    pub(crate) fn alarm(&mut self) {
        self.alarmed = Some(failpoints::now());
    }

    /// Whether something was wrong within the last [`ALARM`].
    pub(crate) fn is_alarmed(&self) -> bool {
        self.alarmed.is_some_and(|last| failpoints::now().saturating_duration_since(last) < ALARM)
    }

    /// Whether an attachment's host ports and state file are to be compared now. Those of one with many, which take long, are at most
    /// once a minute.
    pub(crate) fn is_due(&mut self, attachment: &Attachment) -> bool {
        if attachment.port.mappings.len() <= MANY_PORTS {
            return true;
        }
        let now = failpoints::now();
        let last = self.compared.get(&attachment.port.host.index);
        let is_due = last.is_none_or(|last| now.duration_since(*last) >= RARELY);
        if is_due {
            self.compared.insert(attachment.port.host.index, now);
        }
        is_due
    }

    /// Records a host end's bridge port flags.
    pub(crate) fn serves(&mut self, link: &Link) {
        self.in_service.insert(link.index, link.port_flags);
    }

    /// Whether a host end has been a port of its bridge. One that has not is still being set up.
    pub(crate) fn is_in_service(&self, ifindex: u32) -> bool {
        self.in_service.contains_key(&ifindex)
    }

    /// Whether repairs are disabled.
    pub(crate) const fn is_off(&self) -> bool {
        self.off
    }

    /// The expected bridge port flags of a host end.
    pub(crate) fn flags_of(&self, attachment: &Attachment) -> PortFlags {
        let was = self.in_service.get(&attachment.port.host.index).copied().unwrap_or_default();
        was.and(port_flags(&attachment.port))
    }

    /// Leaves out the addresses of an interface that are missing only for a moment.
    pub(crate) fn lasting(&mut self, ifindex: u32, mut findings: Vec<Finding>) -> Vec<Finding> {
        let is_address = |finding: &Finding| matches!(finding, Finding::Address { .. });
        if !findings.iter().any(is_address) {
            self.unaddressed.remove(&ifindex);
        } else if !self.miss(ifindex) {
            findings.retain(|finding| !is_address(finding));
        }
        findings
    }

    /// Records a missing address. Returns false if it is too early to restore it.
    pub(crate) fn miss(&mut self, ifindex: u32) -> bool {
        failpoints::now().duration_since(*self.unaddressed.entry(ifindex).or_insert_with(failpoints::now))
            > ADDRESS_RESPITE
    }

    /// Forgets an attachment.
    pub(crate) fn forget(&mut self, attachment: &Attachment) {
        self.in_service.remove(&attachment.port.host.index);
        self.stationed.remove(&attachment.port.host.index);
        self.compared.remove(&attachment.port.host.index);
        self.settle(&attachment.port.key);
    }

    /// What is wrong by now, of this gravity.
    pub(crate) fn remarks(&self, gravity: Gravity) -> impl Iterator<Item = String> {
        let faults = self.faults.iter().filter(move |((of, _), _)| *of == gravity);
        faults.map(|((_, name), wrong)| format!("{name}: {}", wrong.join("; ")))
    }

    /// Removes a fault.
    pub(crate) fn resolve(&mut self, what: &Named) {
        self.faults.remove(what);
    }

    /// An attachment is gone, with all that belongs to it.
    pub(crate) fn settle(&mut self, key: &AttachmentKey) {
        for gravity in [Gravity::Fault, Gravity::Warning] {
            let what = (gravity, key.to_string());
            self.faults.remove(&what);
            self.repaired.remove(&what);
        }
    }

    /// Whether an object may be repaired now.
    pub(crate) fn may_repair(&mut self, what: &Named) -> bool {
        let now = failpoints::now();
        let (since, times) = match self.repaired.get(what) {
            Some((since, times)) if now.duration_since(*since) <= RESPITE => (*since, *times),
            _ => (now, 0),
        };
        if times < FEW {
            self.repaired.insert(what.clone(), (since, times + 1));
        }
        times < FEW
    }
}

//! What the agent remembers from one look at its attachments to the next: what it repaired, and what it could not.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::time::{Duration, Instant};

use shunt_agent_api::AttachmentKey;
use shunt_netlink::bridge::PortFlags;
use shunt_netlink::link::Link;

use crate::failpoints;
use crate::registry::{Attachment, port_flags};

/// How long a few repairs are given before the next one of the same: somebody else may be at it too.
const RESPITE: Duration = Duration::from_millis(900);
const FEW: u32 = 3;

/// How long a bridge may lack an address: one that is replaced is first removed.
const ADDRESS_RESPITE: Duration = Duration::from_millis(200);

/// What is remembered between one look and the next.
#[derive(Debug, Default)]
pub(super) struct Repairs {
    /// Whether nothing is to be repaired.
    off: bool,
    /// How much was repaired since the start.
    pub(super) count: u64,
    /// What could not be repaired, by whose it is.
    pub(super) faults: BTreeMap<String, Vec<String>>,
    /// How each host end was a port of its bridge. The plugin attaches one before it makes it a port.
    pub(super) in_service: HashMap<u32, PortFlags>,
    /// The host ends behind which their bridges were told of the container. Whoever makes the port does that.
    pub(super) stationed: HashSet<u32>,
    /// The host ends whose programs or entries were put back: the kernel may have begun flows meanwhile.
    pub(super) unsure: HashSet<u32>,
    /// What was too early to be repaired again.
    pub(super) deferred: BTreeSet<AttachmentKey>,
    /// Since when how often.
    repaired: HashMap<String, (Instant, u32)>,
    /// Since when bridges lack an address, by their indexes.
    pub(super) unaddressed: HashMap<u32, Instant>,
    /// The last whose programs were looked for.
    pub(super) watched: Option<AttachmentKey>,
    /// The last that was looked at.
    pub(super) last: Option<AttachmentKey>,
}

impl Repairs {
    pub(super) fn new(repairs: bool) -> Self {
        Self { off: !repairs, ..Self::default() }
    }

    /// Notes how a host end is a port of its bridge.
    pub(super) fn serves(&mut self, link: &Link) {
        self.in_service.insert(link.index, link.port_flags);
    }

    /// Whether a host end was a port of its bridge. One that was not is still being made.
    pub(super) fn is_in_service(&self, ifindex: u32) -> bool {
        self.in_service.contains_key(&ifindex)
    }

    /// Whether nothing is to be repaired.
    pub(super) const fn is_off(&self) -> bool {
        self.off
    }

    /// How a host end is to be a port of its bridge.
    pub(super) fn flags_of(&self, attachment: &Attachment) -> PortFlags {
        let was = self.in_service.get(&attachment.port.host.index).copied().unwrap_or_default();
        was.and(port_flags(&attachment.port))
    }

    /// Notes that an interface lacks an address. False if it is too early to give it back.
    pub(super) fn miss(&mut self, ifindex: u32) -> bool {
        failpoints::now().duration_since(*self.unaddressed.entry(ifindex).or_insert_with(failpoints::now))
            > ADDRESS_RESPITE
    }

    /// Forgets an attachment.
    pub(super) fn forget(&mut self, attachment: &Attachment) {
        self.in_service.remove(&attachment.port.host.index);
        self.stationed.remove(&attachment.port.host.index);
        self.settle(&attachment.port.key.to_string());
    }

    /// Nothing is wrong with it now.
    pub(super) fn resolve(&mut self, name: &str) {
        self.faults.remove(name);
    }

    /// It is gone.
    fn settle(&mut self, name: &str) {
        self.faults.remove(name);
        self.repaired.remove(name);
    }

    /// Whether it may be repaired now.
    pub(super) fn may_repair(&mut self, name: &str) -> bool {
        let now = failpoints::now();
        let (since, times) = match self.repaired.get(name) {
            Some((since, times)) if now.duration_since(*since) <= RESPITE => (*since, *times),
            _ => (now, 0),
        };
        if times < FEW {
            self.repaired.insert(name.to_owned(), (since, times + 1));
        }
        times < FEW
    }
}

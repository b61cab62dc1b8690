//! Attachments, bridges and their objects, in memory.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::ops::Bound::{Excluded, Unbounded};

use shunt_agent_api::{AttachmentKey, BridgePort, Interface, Restrictions};
use shunt_dataplane::abi::{MAX_SLOTS, NO_SLOT};
use shunt_dataplane::wire::address::Mac;
use shunt_netlink::bridge::PortFlags;
use shunt_netlink::link::Link;

use crate::uplink::Uplink;
use crate::vlan_gateway::{Place, VlanGateway};

/// What a port's bridge is to be told of it.
pub fn port_flags(port: &BridgePort) -> PortFlags {
    PortFlags {
        hairpin: port.service.hairpin,
        isolated: port.restrictions.isolated,
        locked: port.restrictions.mac_check || port.restrictions.vlans.is_some(),
        aside: port.restrictions.vlans.is_some(),
    }
}

/// One container interface, attached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attachment {
    /// What was asked for.
    pub port: BridgePort,
    /// `port.mac`, parsed.
    pub mac: Mac,
    /// Its counters.
    pub slot: u32,
    /// The container's end.
    pub peer: PeerEnd,
    /// External filters and qdiscs on its host end.
    pub others: Others,
    /// Whether its programs are left to the deletion of its link.
    pub abandoned: bool,
    /// Whether VLAN interfaces are on the container's end.
    pub is_parent: bool,
    /// The addresses of those VLAN interfaces, which its source guard allows.
    pub lent: Vec<IpAddr>,
}

impl Attachment {
    /// Whether it has restrictions; then its programs fail closed.
    pub fn is_restricted(&self) -> bool {
        self.port.restrictions != Restrictions::default()
    }

    /// The station of its static FDB entry in the kernel's bridge; none for a port in VLANs.
    pub fn known_station(&self) -> Option<Mac> {
        self.port.restrictions.vlans.is_none().then_some(self.mac)
    }

    /// Whether it is in its bridge's flood list.
    pub fn is_flooded_to(&self) -> bool {
        self.port.restrictions.vlans.is_some() || self.port.vlan.is_some_and(|vlan| !vlan.within)
    }

    /// Whether the bridge port has all required flags; additional ones are the operator's.
    pub fn is_served_by(&self, link: &Link) -> bool {
        self.expected_flags(link) == link.port_flags
    }

    /// The flags that its bridge port should have: the required ones, and those that others have added.
    pub fn expected_flags(&self, link: &Link) -> PortFlags {
        link.port_flags.and(port_flags(&self.port))
    }
}

/// The state of a container's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerEnd {
    /// It does not.
    Down,
    /// The plugin sets it up; no event has confirmed that yet.
    Promised,
    /// It does.
    Up,
}

impl PeerEnd {
    /// The state from the host end's carrier, and whether the plugin sets the end up.
    pub fn new(carrier: bool, is_promised: bool) -> Self {
        match (carrier, is_promised) {
            (true, _) => Self::Up,
            (false, true) => Self::Promised,
            (false, false) => Self::Down,
        }
    }

    /// The state after an event. An end that is still being set up has not gone down.
    #[must_use]
    pub fn seen(self, carrier: bool) -> Self {
        Self::new(carrier, self == Self::Promised)
    }

    /// Whether it receives packets.
    pub fn is_up(self) -> bool {
        self != Self::Down
    }
}

/// External filters and qdiscs on a host end, which packets must not bypass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Others {
    /// Filters on what the container sends.
    pub filters: bool,
    /// A qdisc (the agent's for a limit, or another user's) or filters towards the container.
    pub queue: bool,
}

/// A bridge that has attachments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bridge {
    /// The bridge device, as the kernel last described it.
    pub link: Link,
    /// Its counters.
    pub slot: u32,
}

/// The lower interface of VLAN interfaces.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Trunk {
    /// The master, or the host end of the container's interface below.
    pub link: Interface,
    /// Whether it is the latter.
    pub within: bool,
}

impl Trunk {
    /// That of a VLAN interface; none for a port of a bridge.
    pub fn of(port: &BridgePort) -> Option<Self> {
        port.vlan.map(|vlan| Self { link: port.bridge.clone(), within: vlan.within })
    }
}

/// Every attachment, by each of its names.
///
/// Invariant: the bridge of every attachment is in `bridges`, and no two attachments share a host end.
#[derive(Debug, Default)]
pub struct Registry {
    attachments: BTreeMap<AttachmentKey, Attachment>,
    hosts: HashMap<u32, AttachmentKey>,
    bridges: BTreeMap<u32, Bridge>,
    trunks: BTreeSet<Trunk>,
    /// Bridges' uplinks, by their ifindexes.
    pub uplinks: BTreeMap<u32, Uplink>,
    /// The gateways of bridges' VLANs.
    pub gateways: BTreeMap<Place, VlanGateway>,
    /// Counter slots.
    pub slots: Slots,
}

impl Registry {
    /// The attachment of this key.
    pub fn get(&self, key: &AttachmentKey) -> Option<&Attachment> {
        self.attachments.get(key)
    }

    /// The same, mutable.
    pub fn get_mut(&mut self, key: &AttachmentKey) -> Option<&mut Attachment> {
        self.attachments.get_mut(key)
    }

    /// The attachment whose host end has this ifindex.
    pub fn by_host(&self, ifindex: u32) -> Option<&Attachment> {
        self.attachments.get(self.hosts.get(&ifindex)?)
    }

    /// The same, mutable.
    pub fn by_host_mut(&mut self, ifindex: u32) -> Option<&mut Attachment> {
        self.attachments.get_mut(self.hosts.get(&ifindex)?)
    }

    /// The VLAN gateway with this end.
    pub fn gateway_by_end(&self, ifindex: u32) -> Option<&VlanGateway> {
        let mut gateways = self.gateways.values();
        gateways.find(|it| it.link.index == ifindex || it.port.port.host.index == ifindex)
    }

    /// Every attachment, in the order of their keys.
    pub fn attachments(&self) -> impl Iterator<Item = &Attachment> {
        self.attachments.values()
    }

    /// The key that comes after another one; after the last comes the first.
    pub fn after(&self, key: Option<&AttachmentKey>) -> Option<&AttachmentKey> {
        let next = key.and_then(|key| self.attachments.range((Excluded(key), Unbounded)).next());
        next.or_else(|| self.attachments.first_key_value()).map(|(key, _)| key)
    }

    /// The number of attachments.
    pub fn len(&self) -> usize {
        self.attachments.len()
    }

    /// Whether there is no attachment.
    pub fn is_empty(&self) -> bool {
        self.attachments.is_empty()
    }

    /// The attachments of one bridge.
    pub fn of_bridge(&self, bridge: u32) -> impl Iterator<Item = &Attachment> {
        let on = move |attachment: &&Attachment| attachment.port.bridge.index == bridge;
        self.attachments.values().filter(on).filter(|attachment| attachment.port.vlan.is_none())
    }

    /// The attachments of one trunk.
    pub fn of_trunk(&self, trunk: &Trunk) -> impl Iterator<Item = &Attachment> {
        self.attachments.values().filter(|attachment| Trunk::of(&attachment.port).as_ref() == Some(trunk))
    }

    /// Every trunk that has attachments.
    pub fn trunks(&self) -> impl Iterator<Item = &Trunk> {
        self.trunks.iter()
    }

    /// Whether there is this trunk.
    pub fn has_trunk(&self, trunk: &Trunk) -> bool {
        self.trunks.contains(trunk)
    }

    /// Adds a trunk. Returns false if it was known.
    pub fn insert_trunk(&mut self, trunk: Trunk) -> bool {
        self.trunks.insert(trunk)
    }

    /// Removes a trunk. Returns false if there was none.
    pub fn remove_trunk(&mut self, trunk: &Trunk) -> bool {
        self.trunks.remove(trunk)
    }

    /// Adds an attachment, after its bridge.
    pub fn insert(&mut self, attachment: Attachment) {
        self.hosts.insert(attachment.port.host.index, attachment.port.key.clone());
        self.attachments.insert(attachment.port.key.clone(), attachment);
    }

    /// Forgets an attachment.
    pub fn remove(&mut self, key: &AttachmentKey) -> Option<Attachment> {
        let attachment = self.attachments.remove(key)?;
        self.hosts.remove(&attachment.port.host.index);
        Some(attachment)
    }

    /// The bridge with this ifindex, if it has attachments.
    pub fn bridge(&self, index: u32) -> Option<&Bridge> {
        self.bridges.get(&index)
    }

    /// Every bridge that has attachments.
    pub fn bridges(&self) -> impl Iterator<Item = &Bridge> {
        self.bridges.values()
    }

    /// Adds or updates a bridge.
    pub fn insert_bridge(&mut self, bridge: Bridge) {
        self.bridges.insert(bridge.link.index, bridge);
    }

    /// Forgets a bridge.
    pub fn remove_bridge(&mut self, index: u32) -> Option<Bridge> {
        self.bridges.remove(&index)
    }
}

/// Slots of `COUNTERS`.
#[derive(Debug)]
pub struct Slots {
    /// Returned slots, the lowest first: the used part of the map stays small.
    free: BTreeSet<u32>,
    /// The first slot that was never used.
    next: u32,
}

impl Default for Slots {
    fn default() -> Self {
        Self { free: BTreeSet::new(), next: NO_SLOT + 1 }
    }
}

impl Slots {
    /// Takes a free slot; none when every one is taken.
    pub fn take(&mut self) -> Option<u32> {
        self.free.pop_first().or_else(|| {
            let slot = (self.next < MAX_SLOTS).then_some(self.next)?;
            self.next += 1;
            Some(slot)
        })
    }

    /// Takes a given slot, which an earlier agent's entry uses. Returns false if it is taken or out of range.
    pub fn claim(&mut self, slot: u32) -> bool {
        if slot == NO_SLOT || slot >= MAX_SLOTS {
            return false;
        }
        while self.next <= slot {
            self.free.insert(self.next);
            self.next += 1;
        }
        self.free.remove(&slot)
    }

    /// How many there are, and how many of them are free.
    pub fn count(&self) -> (u32, usize) {
        (MAX_SLOTS - 1, (MAX_SLOTS - self.next) as usize + self.free.len())
    }

    /// Returns a slot; the shared slot is never freed.
    pub fn give_back(&mut self, slot: u32) {
        if slot != NO_SLOT {
            self.free.insert(slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_used_again_and_the_shared_one_is_never_given_out() {
        let mut slots = Slots::default();
        let (one, two) = (slots.take().unwrap(), slots.take().unwrap());
        assert!(one != NO_SLOT && two != NO_SLOT && one != two);
        slots.give_back(one);
        assert_eq!(slots.count(), (MAX_SLOTS - 1, MAX_SLOTS as usize - 2));
        assert_eq!(slots.take(), Some(one));
    }

    #[test]
    fn a_claimed_slot_is_not_given_out_again() {
        let mut slots = Slots::default();
        assert!(slots.claim(3));
        assert!(!slots.claim(3) && !slots.claim(NO_SLOT) && !slots.claim(MAX_SLOTS));
        let given: Vec<_> = (0..3).map_while(|_| slots.take()).collect();
        assert_eq!(given, [1, 2, 4]);
    }

    #[test]
    fn when_every_slot_is_taken_there_is_none() {
        let mut slots = Slots::default();
        assert_eq!((0..).map_while(|_: u32| slots.take()).count() as u32, MAX_SLOTS - 1);
        assert_eq!(slots.take(), None);
    }
}

//! What is attached, in memory: attachments, their bridges and all that belongs to these. Plain data; the kernel is not asked.

mod attachment;
mod bridge;
mod port_flags;
mod settings;
mod slots;
mod totals;
mod trunk;
mod uplink;
pub mod vlan_gateway;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound::{Excluded, Included, Unbounded};

use shunt_agent_api::AttachmentKey;

pub use self::attachment::{Attachment, External, PORT_MARK, PeerEnd};
pub use self::bridge::Bridge;
pub use self::port_flags::port_flags;
pub use self::settings::{Domain, Settings};
pub use self::slots::Slots;
use self::totals::Totals;
pub use self::trunk::Trunk;
pub use self::uplink::Uplink;
pub use self::vlan_gateway::{Place, VlanGateway};

/// Every attachment, by each of its names.
///
/// Invariant: the bridge of every attachment is in `bridges`, and no two attachments share a host end.
#[derive(Debug, Default)]
pub struct Registry {
    attachments: BTreeMap<AttachmentKey, Attachment>,
    hosts: HashMap<u32, AttachmentKey>,
    /// Their host ends, by the ifindex of the bridge, or of what VLAN interfaces are above.
    below: HashMap<u32, BTreeSet<u32>>,
    bridges: BTreeMap<u32, Bridge>,
    trunks: BTreeSet<Trunk>,
    /// Bridges' uplinks, by their ifindexes.
    pub uplinks: BTreeMap<u32, Uplink>,
    /// The gateways of bridges' VLANs.
    pub gateways: BTreeMap<Place, VlanGateway>,
    /// Counter slots.
    pub slots: Slots,
    totals: Totals,
    edition: u64,
}

impl Registry {
    /// The attachment of this key.
    pub fn get(&self, key: &AttachmentKey) -> Option<&Attachment> {
        self.attachments.get(key)
    }

    /// The same, mutable. What was asked for is changed by [`Registry::insert`] only.
    pub fn get_mut(&mut self, key: &AttachmentKey) -> Option<&mut Attachment> {
        self.attachments.get_mut(key)
    }

    /// The attachment whose host end has this ifindex.
    pub fn by_host(&self, ifindex: u32) -> Option<&Attachment> {
        self.attachments.get(self.hosts.get(&ifindex)?)
    }

    /// The same, mutable, as [`Registry::get_mut`].
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

    /// Every attachment once, from the one that comes after a key on.
    pub fn round_after(&self, key: Option<&AttachmentKey>) -> impl Iterator<Item = &Attachment> {
        let before = key.map(|key| self.attachments.range((Unbounded, Included(key))));
        let behind = self.attachments.range((key.map_or(Unbounded, Excluded), Unbounded));
        behind.chain(before.into_iter().flatten()).map(|(_, attachment)| attachment)
    }

    /// The number of attachments.
    #[allow(clippy::len_without_is_empty, reason = "nobody asks that")]
    pub fn len(&self) -> usize {
        self.attachments.len()
    }

    /// A number that is another one whenever an attachment has come, has gone, or asks for something else.
    pub fn edition(&self) -> u64 {
        self.edition
    }

    /// Whether any attachment has host ports.
    pub fn has_mapped(&self) -> bool {
        self.totals.mapped > 0
    }

    /// Whether any attachment's packets are masqueraded.
    pub fn has_masqueraded(&self) -> bool {
        self.totals.masqueraded > 0
    }

    /// The attachments that have host ports. Without any no attachment is looked at.
    pub fn with_mappings(&self) -> impl Iterator<Item = &Attachment> {
        let all = (self.totals.mapped > 0).then(|| self.attachments.values());
        all.into_iter().flatten().filter(|attachment| !attachment.port.mappings.is_empty())
    }

    /// The attachments of which rules of nf_tables may be made. Without any no attachment is looked at.
    pub fn with_rules(&self) -> impl Iterator<Item = &Attachment> + Clone {
        let all = (self.totals.ruled > 0).then(|| self.attachments.values());
        all.into_iter().flatten().filter(|attachment| attachment.has_rules())
    }

    /// Whether the kernel opens any host ports.
    pub fn has_opened(&self) -> bool {
        self.totals.opened > 0
    }

    /// Whether others' rules are asked for any attachment's flows.
    pub fn has_heeded(&self) -> bool {
        self.totals.heeded > 0
    }

    /// Whether any attachment is in VLANs of its bridge.
    pub fn has_any_in_vlans(&self) -> bool {
        self.totals.in_vlans > 0
    }

    /// Whether any attachment's bridge has an uplink that the attachment names.
    pub fn has_uplinked(&self) -> bool {
        self.totals.uplinked > 0
    }

    /// Whether a bridge has attachments.
    pub fn has_ports_on(&self, bridge: u32) -> bool {
        self.of_bridge(bridge).next().is_some()
    }

    /// The attachments of one bridge.
    pub fn of_bridge(&self, bridge: u32) -> impl Iterator<Item = &Attachment> {
        self.above(bridge).filter(|attachment| attachment.port.vlan.is_none())
    }

    /// The attachments of one trunk.
    pub fn of_trunk(&self, trunk: &Trunk) -> impl Iterator<Item = &Attachment> {
        self.above(trunk.link.index).filter(|attachment| Trunk::of(&attachment.port).as_ref() == Some(trunk))
    }

    fn above(&self, link: u32) -> impl Iterator<Item = &Attachment> {
        let hosts = self.below.get(&link).into_iter().flatten();
        hosts.filter_map(|host| self.by_host(*host))
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
        self.totals.add(&attachment);
        let key = attachment.port.key.clone();
        if let Some(former) = self.attachments.get(&key) {
            forget_below(&mut self.below, former);
        }
        self.below.entry(attachment.port.bridge.index).or_default().insert(attachment.port.host.index);
        if self.attachments.get(&key).is_none_or(|known| known.port != attachment.port) {
            self.edition += 1;
        }
        if let Some(former) = self.attachments.insert(key, attachment) {
            self.totals.subtract(&former);
        }
    }

    /// Forgets an attachment.
    pub fn remove(&mut self, key: &AttachmentKey) -> Option<Attachment> {
        let attachment = self.attachments.remove(key)?;
        self.hosts.remove(&attachment.port.host.index);
        forget_below(&mut self.below, &attachment);
        self.totals.subtract(&attachment);
        self.edition += 1;
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

fn forget_below(below: &mut HashMap<u32, BTreeSet<u32>>, attachment: &Attachment) {
    let link = attachment.port.bridge.index;
    let hosts = below.get_mut(&link);
    if hosts.is_some_and(|hosts| hosts.remove(&attachment.port.host.index) && hosts.is_empty()) {
        below.remove(&link);
    }
}

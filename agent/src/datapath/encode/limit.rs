//! Limits in `POLICERS` and `SUBNETS`.

use std::collections::BTreeMap;

use shunt_agent_api::{BridgePort, StormControl};
use shunt_dataplane::abi::policer::{Policer, SLOT_BITS, SUBNET_BITS, Storm, SubnetKey, storm_slot};
use shunt_dataplane::wire::address::Address;

use crate::limits::bucket::{self, Bucket};
use crate::limits::subnets;
use crate::registry::Attachment;

/// Prefixes by length and address, and whether they are limited.
pub type Subnets = BTreeMap<(u32, SubnetKey), u32>;

/// Whether what a port's container sends is policed.
pub fn is_policed(port: &BridgePort) -> bool {
    port.bandwidth.egress.is_some()
}

/// The policers of an attachment's packets and floods, each in its slot.
pub fn policers(attachment: &Attachment) -> Vec<(u32, Policer)> {
    let (port, slot) = (&attachment.port, attachment.slot);
    let sent = port.bandwidth.egress.map(|limit| (slot, Bucket::of(limit, port.mtu).policer()));
    let StormControl { broadcast, multicast } = port.restrictions.storm.unwrap_or_default();
    let flooded = [(broadcast, Storm::Broadcast), (multicast, Storm::Multicast)]
        .into_iter()
        .filter_map(|(rate, storm)| Some((storm_slot(slot, storm), bucket::by_packets(rate?))));
    sent.into_iter().chain(flooded).collect()
}

/// The subnets of an attachment's limit; none if it applies to all packets.
pub fn subnets(attachment: &Attachment) -> Subnets {
    let Some(subnets) = subnets::Subnets::of_sent(&attachment.port.bandwidth) else { return Subnets::new() };
    let slot = attachment.slot;
    let limited = u32::from(subnets.limited);
    let rest = ((SLOT_BITS, SubnetKey { slot, ..SubnetKey::default() }), 1 - limited);
    let prefixes = subnets.prefixes.iter().map(|prefix| {
        let bits = SUBNET_BITS - u32::from(prefix.max_prefix_len()) + u32::from(prefix.prefix_len());
        ((bits, SubnetKey { slot, address: Address::from(prefix.network()) }), limited)
    });
    prefixes.chain([rest]).collect()
}

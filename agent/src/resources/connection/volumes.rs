//! Packet counters per host port that include closed connections.
//!
//! The programs count per direction in the entries of `FLOWS`. When the agent removes an entry, its counts are added here. An evicted or
//! replaced entry is lost, so a sum could decrease: the reported value stays at its maximum until the sum exceeds it.

use std::collections::HashMap;
use std::ops::AddAssign;

use shunt_agent_api::Volume;
use shunt_dataplane::abi::translation::{MappingKey, TRANSLATION_OPENER, Translation, TupleKey};
use shunt_dataplane::wire::address::{Address, L4Port};

/// A host port's key and the container's address: one key may serve both families.
pub(crate) type Place = (MappingKey, Address);

/// Translated packets per direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Volumes {
    /// From the container.
    pub from: Volume,
    /// To the container.
    pub to: Volume,
}

impl AddAssign for Volumes {
    fn add_assign(&mut self, other: Self) {
        for (sum, volume) in [(&mut self.from, other.from), (&mut self.to, other.to)] {
            sum.packets += volume.packets;
            sum.bytes += volume.bytes;
        }
    }
}

impl Volumes {
    /// The counts of an entry, which has one direction.
    pub(crate) fn of(flow: &Translation) -> Self {
        let volume = Volume { packets: flow.packets, bytes: flow.bytes };
        if flow.flags & TRANSLATION_OPENER != 0 {
            Self { to: volume, ..Self::default() }
        } else {
            Self { from: volume, ..Self::default() }
        }
    }

    fn at_least(self, other: Self) -> Self {
        let most = |one: Volume, other: Volume| Volume {
            packets: one.packets.max(other.packets),
            bytes: one.bytes.max(other.bytes),
        };
        Self { from: most(self.from, other.from), to: most(self.to, other.to) }
    }
}

/// The host port of an entry; `is_mapped` says whether there is a host port of exactly this address,
/// otherwise it is one of any address. None if a container began the connection.
pub(crate) fn place(
    key: &TupleKey,
    flow: &Translation,
    is_mapped: impl FnOnce(&MappingKey) -> bool,
) -> Option<Place> {
    if !flow.is_of_host_port() {
        return None;
    }
    let (asked, container) = if flow.flags & TRANSLATION_OPENER != 0 {
        ((key.destination, key.destination_port), flow.becomes.destination)
    } else {
        ((flow.becomes.source, flow.becomes.source_port), key.source)
    };
    let [any, own] = keys(asked, key.protocol);
    Some((if is_mapped(&own) { own } else { any }, container))
}

/// The keys that a packet to this destination looks up: any address of its family, and this address.
pub(crate) fn keys((address, port): (Address, L4Port), protocol: u8) -> [MappingKey; 2] {
    let own = MappingKey { address, port, protocol, pad: 0 };
    [MappingKey { address: address.unspecified(), ..own }, own]
}

/// The sums.
#[derive(Debug, Default)]
pub(crate) struct HostPortCounters {
    swept: HashMap<Place, Volumes>,
    told: HashMap<Place, Volumes>,
}

impl HostPortCounters {
    /// Adds the counts of a removed entry.
    pub(crate) fn sweep(&mut self, place: Place, had: Volumes) {
        *self.swept.entry(place).or_default() += had;
    }

    /// The counts of removed entries. Read them before the entries, so that none is counted twice.
    pub(crate) fn swept(&self) -> HashMap<Place, Volumes> {
        self.swept.clone()
    }

    /// The reported value for a sum: it never decreases.
    pub(crate) fn tell(&mut self, place: Place, sum: Volumes) -> Volumes {
        let told = self.told.entry(place).or_default();
        *told = told.at_least(sum);
        *told
    }

    /// Removes host ports that are gone: a later one starts from zero.
    pub(crate) fn retain(&mut self, is_there: impl Fn(&Place) -> bool) {
        self.swept.retain(|place, _| is_there(place));
        self.told.retain(|place, _| is_there(place));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> Address {
        std::net::IpAddr::from([192, 0, 2, last]).into()
    }

    fn volumes(from: u64, to: u64) -> Volumes {
        let volume = |packets| Volume { packets, bytes: 100 * packets };
        Volumes { from: volume(from), to: volume(to) }
    }

    /// A client's connection with port 8080 of 192.0.2.1, which leads to port 80 of 192.0.2.77.
    fn entries() -> [(TupleKey, Translation); 2] {
        let request = TupleKey {
            source: address(9),
            source_port: 5555.into(),
            destination: address(1),
            destination_port: 8080.into(),
            protocol: 6,
            ..TupleKey::default()
        };
        let becomes =
            TupleKey { domain: 9, destination: address(77), destination_port: 80.into(), ..request };
        let half = |becomes, flags, packets| Translation {
            becomes,
            shown: 0,
            touched: 0,
            begun: 0,
            packets,
            bytes: 100 * packets,
            holder: 0,
            flags,
            acknowledged: 0,
            end: 0,
        };
        [
            (request, half(becomes, TRANSLATION_OPENER, 3)),
            (becomes.reversed(9), half(request.reversed(0), 0, 2)),
        ]
    }

    #[test]
    fn both_entries_of_a_connection_are_their_host_ports() {
        let [any, own] = keys((address(1), 8080.into()), 6);
        let mut sum = Volumes::default();
        for (key, flow) in entries() {
            assert_eq!(place(&key, &flow, |key| *key == own), Some((own, address(77))));
            assert_eq!(place(&key, &flow, |_| false), Some((any, address(77))));
            assert_eq!(place(&key, &Translation { holder: 7, ..flow }, |_| true), None, "masqueraded");
            sum += Volumes::of(&flow);
        }
        assert_eq!(sum, volumes(2, 3));
    }

    #[test]
    fn sums_outlive_their_entries_and_never_fall() {
        let [any, own] = keys((address(1), 8080.into()), 6).map(|key| (key, address(77)));
        let mut counters = HostPortCounters::default();
        let told = |counters: &mut HostPortCounters, living| {
            let mut sum = counters.swept().get(&any).copied().unwrap_or_default();
            sum += living;
            counters.tell(any, sum)
        };
        assert_eq!(told(&mut counters, volumes(2, 3)), volumes(2, 3));
        counters.sweep(any, volumes(2, 3));
        assert_eq!(told(&mut counters, volumes(0, 0)), volumes(2, 3), "swept");
        assert_eq!(told(&mut counters, volumes(10, 10)), volumes(12, 13));
        assert_eq!(told(&mut counters, volumes(1, 1)), volumes(12, 13), "some were evicted");
        assert_eq!(told(&mut counters, volumes(11, 10)), volumes(13, 13));
        counters.retain(|place| *place == own);
        assert_eq!(told(&mut counters, volumes(0, 0)), volumes(0, 0), "another's port");
    }
}

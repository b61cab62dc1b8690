//! What came by each host port, and what was answered, by connections that are over, too.
//!
//! The programs count each direction of each connection in its entry of `FLOWS`, and an entry goes: the sweep says here what it had.
//! One that makes room for another, or that a new connection of the same tuple takes, says nothing; so the sums might fall, and
//! what was told last is told until they are past it.

use std::collections::HashMap;
use std::ops::AddAssign;

use shunt_agent_api::Volume;
use shunt_dataplane::abi::translation::{MappingKey, TRANSLATION_OPENER, Translation, TupleKey};
use shunt_dataplane::wire::address::{Address, L4Port};

/// A host port's entry, and the container's address: one entry may be the host ports of both families.
pub type Place = (MappingKey, Address);

/// What was translated, each way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Volumes {
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
    /// What an entry has counted: one direction, so nothing of the other.
    pub fn of(flow: &Translation) -> Self {
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

/// By which host port an entry's packets came or are answered: `is_mapped` says whether there is one of that very address, or
/// else it is one of any. None: a container began the connection.
pub fn place(
    key: &TupleKey,
    flow: &Translation,
    is_mapped: impl FnOnce(&MappingKey) -> bool,
) -> Option<Place> {
    if flow.holder != 0 {
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

/// The keys by which a packet to there asks for a mapping: that of any address of its family, and that of the very one.
pub fn keys((address, port): (Address, L4Port), protocol: u8) -> [MappingKey; 2] {
    let own = MappingKey { address, port, protocol, pad: 0 };
    [MappingKey { address: address.unspecified(), ..own }, own]
}

/// The sums.
#[derive(Debug, Default)]
pub struct HostPortCounters {
    swept: HashMap<Place, Volumes>,
    told: HashMap<Place, Volumes>,
}

impl HostPortCounters {
    /// An entry has been removed that had this.
    pub fn sweep(&mut self, place: Place, had: Volumes) {
        *self.swept.entry(place).or_default() += had;
    }

    /// What removed entries had: to be asked for before the entries are looked at, so that none is counted twice.
    pub fn swept(&self) -> HashMap<Place, Volumes> {
        self.swept.clone()
    }

    /// What is to be told where the sum is this: it never falls.
    pub fn tell(&mut self, place: Place, sum: Volumes) -> Volumes {
        let told = self.told.entry(place).or_default();
        *told = told.at_least(sum);
        *told
    }

    /// Forgets the host ports that are gone: the next one there begins with nothing.
    pub fn retain(&mut self, is_there: impl Fn(&Place) -> bool) {
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

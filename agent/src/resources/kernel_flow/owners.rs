//! Whose flows conntrack's connections are.

use std::collections::{HashMap, HashSet};

use shunt_dataplane::abi::{End, FlowKey};
use shunt_dataplane::wire::address::Address;
use shunt_netlink::conntrack::{TrackedConnection, Tuple};

use crate::registry::Registry;

/// A container that has an address.
#[derive(Clone, Copy, Debug)]
struct Place {
    bridge: u32,
    ifindex: u32,
    slot: u32,
}

/// The containers that have each address.
#[derive(Debug, Default)]
pub(super) struct Owners(HashMap<Address, Vec<Place>>);

impl Owners {
    pub(super) fn of(registry: &Registry) -> Self {
        let mut owners = Self::default();
        for attachment in registry.attachments() {
            let (bridge, ifindex) = (attachment.port.bridge.index, attachment.port.host.index);
            let place = Place { bridge, ifindex, slot: attachment.slot };
            for ip in &attachment.port.ips {
                owners.0.entry(Address::from(*ip)).or_default().push(place);
            }
        }
        owners
    }

    /// The flows of containers, each with the counter slot of the one that pays for it: who has begun it, if that is a container.
    pub(super) fn flows(&self, connections: &[TrackedConnection]) -> HashMap<FlowKey, Option<u32>> {
        let mut flows = HashMap::new();
        for connection in connections {
            let beginner = self.places(connection.original.source.ip().into());
            for tuple in [connection.original, connection.reply] {
                for place in self.ends(&tuple) {
                    let is_there = |beginner: &&Place| beginner.bridge == place.bridge;
                    let payer = beginner.iter().find(is_there).or(beginner.first());
                    flows.insert(key(place.bridge, &tuple), payer.map(|payer| payer.slot));
                }
            }
        }
        flows
    }

    /// Whether a connection is one of two containers of one bridge, and not translated.
    pub(super) fn is_bridged(&self, connection: &TrackedConnection) -> bool {
        let TrackedConnection { original, reply, .. } = connection;
        let is_mirrored = (original.source, original.destination) == (reply.destination, reply.source);
        let [one, other] = [original.source, original.destination].map(|end| self.places(end.ip().into()));
        is_mirrored && one.iter().any(|place| other.iter().any(|it| it.bridge == place.bridge))
    }

    /// The host ends of containers that have any.
    pub(super) fn ports(&self, connections: &[TrackedConnection]) -> HashSet<u32> {
        let tuples = connections.iter().flat_map(|connection| [connection.original, connection.reply]);
        tuples.flat_map(|tuple| self.ends(&tuple).map(|place| place.ifindex).collect::<Vec<_>>()).collect()
    }

    /// The counter slots of the containers at the ends of a flow.
    pub(super) fn slots(&self, flow: &FlowKey) -> impl Iterator<Item = u32> {
        let places = [flow.low, flow.high].map(|end| self.places(end)).into_iter().flatten();
        places.filter(|place| place.bridge == flow.bridge).map(|place| place.slot)
    }

    fn ends(&self, tuple: &Tuple) -> impl Iterator<Item = &Place> {
        [tuple.source, tuple.destination].into_iter().flat_map(|end| self.places(end.ip().into()))
    }

    fn places(&self, address: Address) -> &[Place] {
        self.0.get(&address).map_or(&[], Vec::as_slice)
    }
}

fn key(bridge: u32, tuple: &Tuple) -> FlowKey {
    let [one, other] = [tuple.source, tuple.destination]
        .map(|end| End { address: end.ip().into(), port: end.port().into() });
    FlowKey::of(bridge, tuple.protocol, one, other)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tuple(source: &str, destination: &str) -> Tuple {
        Tuple { protocol: 17, source: source.parse().unwrap(), destination: destination.parse().unwrap() }
    }

    #[test]
    fn who_has_begun_a_flow_pays_for_it() {
        let place = |slot| Place { bridge: 7, ifindex: 100 + slot, slot };
        let address = |text: &str| Address::from(text.parse::<std::net::IpAddr>().unwrap());
        let owners = Owners(HashMap::from([
            (address("10.0.0.1"), vec![place(1)]),
            (address("10.0.0.2"), vec![place(2)]),
        ]));
        let by_service = TrackedConnection {
            original: tuple("10.0.0.1:4000", "10.96.0.1:53"),
            reply: tuple("10.0.0.2:5353", "10.0.0.1:4000"),
            is_assured: true,
            is_established: true,
            timeout: 0,
        };
        let flows = owners.flows(&[by_service]);
        assert_eq!(flows.len(), 2);
        assert!(flows.values().all(|slot| *slot == Some(1)), "{flows:?}");
        let from_outside = TrackedConnection {
            original: tuple("192.0.2.1:4000", "10.0.0.2:53"),
            reply: tuple("10.0.0.2:53", "192.0.2.1:4000"),
            is_assured: true,
            is_established: true,
            timeout: 0,
        };
        assert_eq!(owners.flows(&[from_outside]).into_values().collect::<Vec<_>>(), [None]);
        assert_eq!(owners.ports(&[by_service]), HashSet::from([101, 102]));
    }
}

//! What the agent remembers of bridges: of a container whose bridge was deleted, and which addresses of bridges containers expect.

use std::collections::{BTreeSet, HashMap};

use ipnet::IpNet;
use shunt_agent_api::BridgePort;
use shunt_netlink::bridge::PortFlags;
use shunt_netlink::link::Link;

/// A container whose bridge was deleted.
#[derive(Clone, Debug)]
pub(crate) struct Orphan {
    pub(super) port: BridgePort,
    pub(super) flags: PortFlags,
    /// The last known state of the bridge.
    pub(super) bridge: Link,
}

impl Orphan {
    /// The ifindex of its host end.
    pub(crate) fn host(&self) -> u32 {
        self.port.host.index
    }
}

/// The addresses that the attachments of each bridge expect on it, by its ifindex.
#[derive(Debug, Default)]
pub(crate) struct Gateways {
    /// In this edition of the registry.
    edition: u64,
    of: HashMap<u32, BTreeSet<IpNet>>,
}

impl Gateways {
    /// Those of one bridge, which are found out once in each edition.
    pub(super) fn of(
        &mut self,
        bridge: u32,
        edition: u64,
        find: impl FnOnce() -> BTreeSet<IpNet>,
    ) -> BTreeSet<IpNet> {
        if self.edition != edition {
            self.of.clear();
            self.edition = edition;
        }
        self.of.entry(bridge).or_insert_with(find).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_found_out_once_for_each_bridge_in_each_edition() {
        let mut gateways = Gateways::default();
        let one = || BTreeSet::from(["10.0.0.1/16".parse().unwrap()]);
        let again = || -> BTreeSet<IpNet> { panic!("nobody asks for anything else") };
        assert_eq!(gateways.of(7, 1, one), one());
        assert_eq!(gateways.of(7, 1, again), one());
        assert_eq!(gateways.of(8, 1, BTreeSet::new), BTreeSet::new());
        assert_eq!(gateways.of(8, 1, again), BTreeSet::new());
        assert_eq!(gateways.of(7, 2, BTreeSet::new), BTreeSet::new());
    }
}

//! The addresses by which masqueraded connections leave, and which of them each gets, as entries of the programs' maps.

use ipnet::IpNet;
use shunt_dataplane::abi::translation::{INTERFACE_BITS, Outlet, SourceKey};
use shunt_dataplane::abi::{AddressKey, MAX_OUTLETS, MAX_SOURCES};
use shunt_netlink::address::Address;

use super::sources;
use crate::datapath::{OutletEntries, SourceEntries};

/// An interface that leads out of the node.
#[derive(Debug)]
pub(super) struct WayOut {
    pub(super) ifindex: u32,
    pub(super) ifname: String,
    /// Its addresses, in the kernel's order.
    pub(super) addresses: Vec<Address>,
    /// Whether its temporary addresses are preferred (RFC 8981).
    pub(super) prefers_temporary: bool,
}

/// All of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct WaysOut {
    /// Entries of `OUTLETS`.
    pub(super) outlets: OutletEntries,
    /// Entries of `SOURCES`.
    pub(super) sources: SourceEntries,
    /// The interfaces whose addresses do not fit: the kernel masquerades what leaves there.
    pub(super) beyond: Vec<String>,
}

impl WaysOut {
    /// Those with the fewest addresses first: what fills the maps is seldom by what anything leaves.
    pub(super) fn of(mut interfaces: Vec<WayOut>, outlet: Outlet) -> Self {
        interfaces.sort_by_key(|way| way.addresses.len());
        let mut all = Self::default();
        interfaces.into_iter().for_each(|way| all.add(way, outlet));
        all
    }

    fn add(&mut self, way: WayOut, outlet: Outlet) {
        let WayOut { ifindex, ifname, addresses, prefers_temporary } = way;
        if self.outlets.len() + addresses.len() > MAX_OUTLETS as usize {
            self.beyond.push(ifname);
            return;
        }
        let fit: Vec<Address> = addresses.iter().filter(|own| own.is_source()).copied().collect();
        let choices = sources::choices(&fit, prefers_temporary);
        if self.sources.len() + choices.len() > MAX_SOURCES as usize {
            self.beyond.push(ifname);
            return;
        }
        // Connections go on with an address that no new one gets any more.
        let outlets = addresses.iter().map(|own| (AddressKey::new(ifindex, 0, own.ip().into()), outlet));
        self.outlets.extend(outlets);
        self.sources.extend(choices.into_iter().map(|(to, source)| (key(ifindex, to), source.into())));
    }
}

/// A prefix of where connections go by an interface, as the programs look it up: IPv4 in its mapped form.
fn key(ifindex: u32, to: IpNet) -> (u32, SourceKey) {
    let mapped = if to.addr().is_ipv4() { 96 } else { 0 };
    let bits = INTERFACE_BITS + mapped + u32::from(to.prefix_len());
    (bits, SourceKey { ifindex, address: to.addr().into() })
}

#[cfg(test)]
mod tests {
    use shunt_netlink::address::{AddressFlags, AddressScope};

    use super::*;

    fn way(ifindex: u32, count: u32) -> WayOut {
        let own = |number: u32| {
            let prefix: IpNet = format!("10.{ifindex}.{}.{}/32", number / 256, number % 256).parse().unwrap();
            let (peer, scope) = (prefix.addr(), AddressScope::Universe);
            Address { index: ifindex, prefix, peer, scope, flags: AddressFlags::empty() }
        };
        let addresses = (0..count).map(own).collect();
        WayOut { ifindex, ifname: format!("up{ifindex}"), addresses, prefers_temporary: false }
    }

    #[test]
    fn an_interface_that_does_not_fit_leaves_the_others_theirs() {
        let ways = WaysOut::of(vec![way(1, MAX_OUTLETS), way(2, 2), way(3, 3)], Outlet::default());
        assert_eq!(ways.beyond, ["up1"]);
        assert_eq!(ways.outlets.len(), 5);
        assert!(ways.sources.keys().all(|(_, key)| key.ifindex != 1), "nothing is chosen that is not there");
        assert!(WaysOut::of(vec![way(1, MAX_OUTLETS)], Outlet::default()).beyond.is_empty());
    }
}

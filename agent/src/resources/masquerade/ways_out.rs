//! The addresses by which masqueraded connections leave, and which of them each gets, as entries of the programs' maps.

use std::iter::repeat;

use ipnet::IpNet;
use shunt_dataplane::abi::translation::{INTERFACE_BITS, Outlet, SourceKey};
use shunt_dataplane::abi::{AddressKey, MAX_OUTLETS, MAX_SOURCES};
use shunt_netlink::address::Address;

use super::sources;
use crate::datapath::{OutletEntries, SourceEntries};

/// An interface by which packets leave with an address of its: it leads out of the node, or to the containers of host ports.
#[derive(Debug)]
pub(super) struct WayOut {
    pub(super) ifindex: u32,
    pub(super) ifname: String,
    /// Its addresses, in the kernel's order.
    pub(super) addresses: Vec<Address>,
    /// Whether its temporary addresses are preferred (RFC 8981).
    pub(super) prefers_temporary: bool,
    /// By what connections leave there that the programs masquerade; none for containers, whose clients come by host ports.
    pub(super) outlet: Option<Outlet>,
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
    pub(super) fn of(mut interfaces: Vec<WayOut>) -> Self {
        interfaces.sort_by_key(|way| way.addresses.len());
        let mut all = Self::default();
        interfaces.into_iter().for_each(|way| all.add(way));
        all
    }

    fn add(&mut self, way: WayOut) {
        let WayOut { ifindex, ifname, addresses, prefers_temporary, outlet } = way;
        let fit: Vec<Address> = addresses.iter().filter(|own| own.is_source()).copied().collect();
        let choices = sources::choices(&fit, prefers_temporary);
        // Connections go on with an address that no new one gets any more.
        let left_by = addresses.iter().map(|own| AddressKey::new(ifindex, 0, own.ip().into()));
        let outlets: Vec<_> =
            outlet.into_iter().flat_map(|outlet| left_by.clone().zip(repeat(outlet))).collect();
        if self.outlets.len() + outlets.len() > MAX_OUTLETS as usize
            || self.sources.len() + choices.len() > MAX_SOURCES as usize
        {
            // Clients of host ports come from the address that they asked then.
            self.beyond.extend(outlet.map(|_| ifname));
            return;
        }
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
        let ifname = format!("up{ifindex}");
        WayOut { ifindex, ifname, addresses, prefers_temporary: false, outlet: Some(Outlet::default()) }
    }

    #[test]
    fn an_interface_that_does_not_fit_leaves_the_others_theirs() {
        let ways = WaysOut::of(vec![way(1, MAX_OUTLETS), way(2, 2), way(3, 3)]);
        assert_eq!(ways.beyond, ["up1"]);
        assert_eq!(ways.outlets.len(), 5);
        assert!(ways.sources.keys().all(|(_, key)| key.ifindex != 1), "nothing is chosen that is not there");
        assert!(WaysOut::of(vec![way(1, MAX_OUTLETS)]).beyond.is_empty());
    }

    #[test]
    fn a_bridge_has_sources_and_is_no_way_out() {
        let bridge = WayOut { outlet: None, ..way(1, 1) };
        let ways = WaysOut::of(vec![bridge]);
        assert!(ways.outlets.is_empty());
        assert!(!ways.sources.is_empty());
    }
}

//! Which address of an interface a masqueraded connection gets: what the kernel's MASQUERADE would choose, as prefixes of where it goes,
//! of which the longest counts.

use std::collections::BTreeMap;
use std::iter::successors;
use std::net::{IpAddr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use shunt_netlink::address::Address;

/// So many IPv6 addresses of one interface are told apart; with more the kernel masquerades.
const MOST: usize = 64;

/// RFC 6724 section 2.1, as in the kernel (`ip6addrlbl_init_table`, net/ipv6/addrlabel.c) unless an operator has changed it: destinations
/// of a label are reached from an address of that label, where there is one.
const LABELS: [(Ipv6Net, u32); 8] = [
    (net([0, 0, 0, 0, 0, 0, 0, 0], 0), 1),
    (net([0x2002, 0, 0, 0, 0, 0, 0, 0], 16), 2),
    (net([0, 0, 0, 0, 0, 0, 0, 0], 96), 3),
    (net([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7), 5),
    (net([0x2001, 0, 0, 0, 0, 0, 0, 0], 32), 6),
    (ORCHIDS, 7),
    (net([0x3ffe, 0, 0, 0, 0, 0, 0, 0], 16), 12),
    (net([0xfec0, 0, 0, 0, 0, 0, 0, 0], 10), 11),
];

/// Hash identifiers (RFC 4843), which have a label of their own.
const ORCHIDS: Ipv6Net = net([0x2001, 0x10, 0, 0, 0, 0, 0, 0], 28);

const fn net([a, b, c, d, e, f, g, h]: [u16; 8], bits: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, c, d, e, f, g, h), bits)
}

/// The choice among the addresses of one interface, in the kernel's order: what goes to the prefix gets the address.
pub(super) fn choices(addresses: &[Address], prefers_temporary: bool) -> Vec<(IpNet, IpAddr)> {
    let v4 = of_v4(addresses).into_iter().map(|(to, source)| (to.into(), source));
    let v6 = of_v6(addresses, prefers_temporary);
    v4.chain(v6.into_iter().map(|(to, source)| (to.into(), source.into()))).collect()
}

/// By the next hop: the first address with it in its subnet, else the first of all (`inet_select_addr`, net/ipv4/devinet.c).
fn of_v4(addresses: &[Address]) -> BTreeMap<Ipv4Net, IpAddr> {
    let mut choices: BTreeMap<Ipv4Net, IpAddr> = BTreeMap::new();
    for address in addresses {
        let (IpNet::V4(prefix), IpAddr::V4(peer)) = (address.prefix, address.peer) else { continue };
        // On a point-to-point link the subnet is the other end's.
        let subnet = Ipv4Net::new(peer, prefix.prefix_len()).unwrap_or(prefix).trunc();
        let mut around = successors(Some(subnet), Ipv4Net::supernet);
        if !around.any(|earlier| choices.contains_key(&earlier)) {
            choices.insert(subnet, address.ip());
        }
    }
    if let Some(first) = addresses.iter().map(Address::ip).find(IpAddr::is_ipv4) {
        choices.entry(Ipv4Net::default()).or_insert(first);
    }
    choices
}

/// By the destination: of its label, temporary or not as preferred (RFC 8981), with the longest common prefix, the first
/// (`ipv6_get_saddr_eval`, net/ipv6/addrconf.c, rules 6 to 8; between the last two, for ORCHIDs one of these).
fn of_v6(addresses: &[Address], prefers_temporary: bool) -> Vec<(Ipv6Net, Ipv6Addr)> {
    let all: Vec<&Address> = addresses.iter().filter(|address| address.ip().is_ipv6()).collect();
    if all.len() > MOST {
        return Vec::new();
    }
    let mut choices: Vec<(Ipv6Net, Ipv6Addr)> = Vec::new();
    for (within, label) in LABELS {
        let fit = preferred(all.clone(), |address| label_of(address) == Some(label));
        let fit = preferred(fit, |address| address.is_temporary() == prefers_temporary);
        let fit = preferred(fit, |address| is_orchid(address) == ORCHIDS.contains(&within));
        let fit: Vec<Ipv6Net> = fit.iter().filter_map(|address| v6(address)).collect();
        // Of another label's destinations that label decides.
        let is_others = |to: &Ipv6Net| {
            LABELS.iter().any(|(other, _)| other.prefix_len() > within.prefix_len() && other.contains(to))
        };
        choices.extend(by_common_prefix(&fit, within).into_iter().filter(|(to, _)| !is_others(to)));
    }
    choices
}

/// Those that fit; all where none does.
fn preferred(all: Vec<&Address>, fits: impl Fn(&Address) -> bool) -> Vec<&Address> {
    let fit: Vec<_> = all.iter().copied().filter(|address| fits(address)).collect();
    if fit.is_empty() { all } else { fit }
}

fn v6(address: &Address) -> Option<Ipv6Net> {
    match address.prefix {
        IpNet::V6(prefix) => Some(prefix),
        IpNet::V4(_) => None,
    }
}

fn is_orchid(address: &Address) -> bool {
    v6(address).is_some_and(|own| ORCHIDS.contains(&own.addr()))
}

fn label_of(address: &Address) -> Option<u32> {
    let own = v6(address)?.addr();
    let matching = LABELS.iter().filter(|(within, _)| within.contains(&own));
    matching.max_by_key(|(within, _)| within.prefix_len()).map(|(_, label)| *label)
}

/// The prefixes of `within` at which another address begins to have the longest prefix in common with the destination.
fn by_common_prefix(addresses: &[Ipv6Net], within: Ipv6Net) -> Vec<(Ipv6Net, Ipv6Addr)> {
    let mut lengths: Vec<u8> = addresses.iter().map(|own| own.prefix_len().saturating_add(1)).collect();
    for (number, own) in addresses.iter().enumerate() {
        lengths.extend(addresses.iter().take(number).map(|other| common(own.addr(), other.addr()) + 1));
    }
    lengths.retain(|bits| (within.prefix_len() + 1..=128).contains(bits));
    lengths.sort_unstable();
    lengths.dedup();
    let mut choices: Vec<(Ipv6Net, Ipv6Addr)> =
        closest(addresses, within).map(|source| (within, source)).into_iter().collect();
    for bits in lengths {
        for own in addresses {
            let Ok(to) = Ipv6Net::new(own.addr(), bits).map(|to| to.trunc()) else { continue };
            // None outside of `within`.
            let outer =
                choices.iter().rev().find(|(outer, _)| outer.contains(&to)).map(|(_, source)| *source);
            let closer = closest(addresses, to);
            if outer.is_some() && closer != outer {
                choices.extend(closer.map(|source| (to, source)));
            }
        }
    }
    choices
}

/// The first with the longest prefix in common with a destination that shares no more than `to` with any.
fn closest(addresses: &[Ipv6Net], to: Ipv6Net) -> Option<Ipv6Addr> {
    let length = |own: &Ipv6Net| common(own.addr(), to.addr()).min(to.prefix_len()).min(own.prefix_len());
    // `max_by_key` would return the last.
    addresses.iter().rev().max_by_key(|own| length(own)).map(Ipv6Net::addr)
}

/// How many leading bits two addresses share; 127 at most of differing ones.
fn common(one: Ipv6Addr, other: Ipv6Addr) -> u8 {
    (one.to_bits() ^ other.to_bits()).leading_zeros().min(127) as u8
}

#[cfg(test)]
#[path = "sources_tests.rs"]
mod tests;

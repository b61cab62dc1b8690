//! What carries the encapsulated packets.

use std::collections::BTreeSet;
use std::net::IpAddr;

use shunt_netlink::address::addresses;
use shunt_netlink::link::{Selector, link};
use shunt_netlink::route::{family_of, next_hop_of_node};
use shunt_netlink::{Connection, NetlinkError};

use super::far::Far;

/// Ethernet's (RFC 894), for a node that has no interface but the loopback with its address, and no others to send to.
const USUAL: u32 = 1500;

/// The smallest MTU in bytes of the interface with the node's own address and of those out of which the other nodes are reached; none where
/// no interface has that address. What a path further on is smaller the kernel finds out (`skb_tunnel_check_pmtu`).
///
/// # Errors
/// The kernel's tables cannot be read.
pub(super) fn mtu(
    connection: &mut Connection,
    local: IpAddr,
    far: &[Far],
) -> Result<Option<u32>, NetlinkError> {
    let all = connection.list(addresses(0, family_of(local)))?;
    let holders: BTreeSet<u32> = all.iter().filter(|one| one.ip() == local).map(|one| one.index).collect();
    if holders.is_empty() {
        return Ok(None);
    }
    let mut indexes = holders;
    for remote in far.iter().map(|far| far.remote).collect::<BTreeSet<_>>() {
        indexes.extend(connection.get(next_hop_of_node(remote)).ok().flatten().map(|hop| hop.index));
    }
    let mut least = None;
    for index in indexes {
        let found = connection.get(link(Selector::Index(index)))?;
        let mtu = found.filter(|link| !link.loopback).map(|link| link.mtu);
        least = [least, mtu].into_iter().flatten().min();
    }
    Ok(Some(least.unwrap_or(USUAL)))
}

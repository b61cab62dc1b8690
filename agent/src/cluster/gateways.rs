//! The gateways on the cluster network's bridge, when the node gets other pod CIDRs than its pods have.
//!
//! Pods keep the gateway that they were made with, so the bridge has both while such pods run, and only the new one afterwards. Only a
//! bridge that the plugin has made is changed, and of its addresses only the gateways of this node's pod CIDRs. Whatever else is in the
//! way of a gateway stays, and is a warning: the plugin refuses new pods then.

use std::net::IpAddr;

use ipnet::IpNet;
use shunt_agent_api::BRIDGE_MARK;
use shunt_netlink::address::{Address, add_gateway, addresses, delete_address};
use shunt_netlink::link::{Link, Selector, link};
use shunt_netlink::{AddressFamily, Connection, NetlinkError, unless};

use super::conflist::BRIDGE;

/// Has the bridge have the gateways of `own`, and of `earlier` those that `pods` need; what is wrong, in words. Nothing is done while
/// there is no bridge: the plugin makes it.
///
/// # Errors
/// Netlink's.
pub(crate) fn keep(own: &[IpNet], earlier: &[IpNet], pods: &[IpAddr]) -> Result<Vec<String>, NetlinkError> {
    let mut connection = Connection::open()?;
    let Some(bridge) = connection.get(link(Selector::Name(BRIDGE)))? else { return Ok(Vec::new()) };
    let mut present = Vec::new();
    for family in [AddressFamily::Inet, AddressFamily::Inet6] {
        let listed: Vec<Address> = connection.list(addresses(bridge.index, family))?;
        present.extend(listed.into_iter().filter(|one| one.index == bridge.index).map(|one| one.prefix));
    }
    let own: Vec<IpNet> = own.iter().filter_map(gateway).collect();
    let users = |prefix: &IpNet| pods.iter().filter(|pod| prefix.contains(*pod)).count();
    let (needed, done_with): (Vec<IpNet>, Vec<IpNet>) = earlier.iter().partition(|prefix| users(prefix) > 0);
    let mut warnings: Vec<String> = needed.iter().map(|prefix| kept_by(users(prefix), *prefix)).collect();
    if is_ours(&bridge) && !earlier.is_empty() {
        let earlier: Vec<IpNet> = earlier.iter().filter_map(gateway).collect();
        let others: Vec<IpNet> = present.iter().copied().filter(|one| !earlier.contains(one)).collect();
        let is_free = |one: &&IpNet| !present.contains(one) && in_the_way(&others, **one).is_none();
        for missing in
            own.iter().chain(&needed.iter().filter_map(gateway).collect::<Vec<_>>()).filter(is_free)
        {
            put(&mut connection, bridge.index, *missing)?;
        }
        // Behind the new one: the last address of IPv4 would take routes and neighbours with it.
        let stale = done_with.iter().filter_map(gateway).filter(|one| !own.contains(one));
        for stale in stale.filter(|one| present.contains(one)) {
            take(&mut connection, bridge.index, stale)?;
        }
        present = others;
    }
    let missing = own.iter().filter(|gateway| !present.contains(gateway));
    warnings.extend(
        missing.filter_map(|gateway| in_the_way(&present, *gateway).map(|found| refused(found, *gateway))),
    );
    Ok(warnings)
}

fn kept_by(pods: usize, prefix: IpNet) -> String {
    format!(
        "{pods} pods have addresses of this node's earlier pod CIDR {prefix}: they keep their gateway, and other nodes do not reach \
         them; delete them"
    )
}

fn refused(found: IpNet, gateway: IpNet) -> String {
    format!(
        "{BRIDGE} has {found}, and every new pod fails, as it needs the gateway {gateway} there: take the other address away \
         (`ip address delete {found} dev {BRIDGE}`)"
    )
}

fn is_ours(bridge: &Link) -> bool {
    bridge.kind.as_deref() == Some("bridge") && bridge.alias.as_deref() == Some(BRIDGE_MARK)
}

/// The first address of a prefix, which the plugin gives the bridge.
fn gateway(prefix: &IpNet) -> Option<IpNet> {
    IpNet::new(prefix.hosts().find(|host| *host != prefix.network())?, prefix.prefix_len()).ok()
}

/// The address with which the plugin does not add a gateway: a bridge has one of IPv4.
fn in_the_way(present: &[IpNet], gateway: IpNet) -> Option<IpNet> {
    present.iter().copied().find(|other| other.addr().is_ipv4() && gateway.addr().is_ipv4())
}

fn put(connection: &mut Connection, bridge: u32, gateway: IpNet) -> Result<(), NetlinkError> {
    unless(connection.run(add_gateway(bridge, gateway)), NetlinkError::is_existing)?;
    tracing::info!(bridge = BRIDGE, %gateway, "gateway added");
    Ok(())
}

fn take(connection: &mut Connection, bridge: u32, gateway: IpNet) -> Result<(), NetlinkError> {
    unless(connection.run(delete_address(bridge, gateway)), NetlinkError::is_no_address)?;
    tracing::info!(bridge = BRIDGE, %gateway, "gateway of an earlier pod CIDR removed: no pod needs it");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_address_of_a_prefix_is_its_gateway() {
        let of = |text: &str| gateway(&text.parse().unwrap()).unwrap().to_string();
        assert_eq!(of("10.244.1.0/24"), "10.244.1.1/24");
        assert_eq!(of("fd00:244:0:1::/64"), "fd00:244:0:1::1/64");
    }

    #[test]
    fn a_bridge_has_one_address_of_ipv4_and_any_of_ipv6() {
        let nets = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<IpNet>>();
        let present = nets(&["fe80::1/64", "fd01::1/64", "10.9.0.1/24"]);
        assert_eq!(in_the_way(&present, present[1]), None);
        assert_eq!(in_the_way(&present, nets(&["10.244.1.1/24"])[0]), Some(present[2]));
        assert_eq!(in_the_way(&present[..2], nets(&["10.244.1.1/24"])[0]), None);
    }
}

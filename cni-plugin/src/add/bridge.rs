//! The bridge: made as the reference plugin makes it, or taken as it is.

use std::net::IpAddr;

use ipnet::IpNet;
use shunt_agent_api::{Reply, Request};
use shunt_netlink::AddressFamily;
use shunt_netlink::address::{add_gateway, addresses, delete_address};
use shunt_netlink::link::{Link, Selector, add_bridge, set_alias, set_link_up, set_mac, set_promiscuous};
use shunt_netlink::netconf::{Forwards, forwarding};

use crate::agent::Agent;
use crate::error::{AttachError, Error};
use crate::mac::Mac;
use crate::node::{BRIDGE_MARK, Node, sysctl};
use crate::plan::BridgePlan;
use crate::undo::{Journal, MadeBridge, Step};

/// The bridge as an ADD finds it, or has made it.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) link: Link,
    /// Whether it is new.
    new: bool,
}

/// Sees to it that the bridge is there and up; what it lacks then is [`complete`]'s.
pub(crate) fn ensure_bridge(
    node: &mut Node,
    plan: &BridgePlan,
    journal: &mut Journal,
) -> Result<Found, Error> {
    let found = node.link(Selector::Name(&plan.name))?;
    let (bridge, new) = take_or_make(node, plan, found)?;
    journal.push(Step::Bridge(MadeBridge { index: bridge.index, new, addresses: Vec::new() }));
    match &plan.inherits_from {
        Some(uplink) => copy_accept_ra(node, &bridge, uplink)?,
        // Routes of this interface are the plugin's.
        None if bridge.accepts_routers => {
            let _ = sysctl::write(&accept_ra(&plan.name), "0");
        }
        None => {}
    }
    let mut changes = Vec::new();
    if new {
        changes.push(set_alias(Selector::Index(bridge.index), BRIDGE_MARK));
    }
    if plan.promiscuous && !bridge.promiscuous {
        changes.push(set_promiscuous(bridge.index));
    }
    if !bridge.up {
        changes.push(set_link_up(Selector::Index(bridge.index)));
    }
    node.netlink.run_all(changes)?;
    Ok(Found { link: bridge, new })
}

/// Gives the bridge its addresses, and has the node forward what comes for them.
pub(crate) fn complete(
    node: &mut Node,
    found: &Found,
    plan: &BridgePlan,
    agent: &mut Agent,
    journal: &mut Journal,
) -> Result<(), Error> {
    let bridge = &found.link;
    let added = ensure_addresses(node, bridge, plan, agent, journal)?;
    // A bridge whose address was never set takes that of its ports, and changes it as they come and go. Setting it has the kernel
    // forget every neighbour, so one that was made with an address is left alone.
    let is_set = found.new || bridge.alias.as_deref() == Some(BRIDGE_MARK);
    if let (true, false, Some(mac)) = (added, is_set, bridge.mac) {
        node.netlink.run(set_mac(bridge.index, mac))?;
    }
    forward(node, &plan.gateways)
}

fn take_or_make(node: &mut Node, plan: &BridgePlan, found: Option<Link>) -> Result<(Link, bool), Error> {
    if let Some(link) = found {
        return if link.kind.as_deref() == Some("bridge") {
            Ok((link, false))
        } else {
            Err(AttachError::NotABridge(plan.name.clone()).into())
        };
    }
    let add = add_bridge(&Link {
        mtu: plan.mtu.unwrap_or_default(),
        mac: Some(Mac::random().bytes()),
        ..Link::named(&plan.name)
    });
    let new = match node.netlink.run(add) {
        Ok(_) => true,
        // Another ADD was quicker.
        Err(error) if error.is_existing() => false,
        Err(error) => return Err(error.into()),
    };
    match node.link(Selector::Name(&plan.name))? {
        Some(link) if link.kind.as_deref() == Some("bridge") => Ok((link, new)),
        Some(_) => Err(AttachError::NotABridge(plan.name.clone()).into()),
        None => Err(AttachError::Vanished(plan.name.clone()).into()),
    }
}

/// Whether the gateways' addresses are the bridge's own.
fn has_addresses(plan: &BridgePlan) -> bool {
    !plan.gateways.is_empty() && plan.vlan_gateway.is_none()
}

/// Gives the bridge its gateway addresses; answers whether it lacked one.
fn ensure_addresses(
    node: &mut Node,
    bridge: &Link,
    plan: &BridgePlan,
    agent: &mut Agent,
    journal: &mut Journal,
) -> Result<bool, Error> {
    if !has_addresses(plan) {
        return Ok(false);
    }
    let present = node.netlink.list(addresses(bridge.index, AddressFamily::Unspec))?.into_iter();
    let present = present.filter(|address| address.index == bridge.index);
    let mut present: Vec<IpNet> = present.map(|address| address.prefix).collect();
    let mut added = false;
    for gateway in plan.gateways.iter().copied() {
        if present.contains(&gateway) {
            continue;
        }
        if present.iter().any(|other| in_the_way(*other, gateway)) {
            let moved = moved_to(&plan.name, agent)?;
            present.retain(|other| !moved.contains(other));
        }
        while let Some(at) = present.iter().position(|other| in_the_way(*other, gateway)) {
            let found = present.swap_remove(at);
            if !plan.force_address {
                return Err(
                    AttachError::OtherAddress { bridge: plan.name.clone(), wanted: gateway, found }.into()
                );
            }
            node.netlink.run(delete_address(bridge.index, found))?;
        }
        match node.netlink.run(add_gateway(bridge.index, gateway)) {
            Ok(_) => {
                journal.add_address(gateway);
                added = true;
            }
            Err(error) if error.is_existing() => {}
            Err(error) => return Err(error.into()),
        }
        present.push(gateway);
    }
    Ok(added)
}

/// The node's own addresses that the bridge has in place of its uplink: they do not conflict with a gateway, and no ADD removes them.
fn moved_to(bridge: &str, agent: &mut Agent) -> Result<Vec<IpNet>, Error> {
    let Reply::Status(status) = agent.ask(Request::Status)? else { return Ok(Vec::new()) };
    let here = status.relocations.iter().filter(|moved| moved.bridge == bridge);
    Ok(here.flat_map(|moved| &moved.addresses).filter_map(|text| text.parse().ok()).collect())
}

fn accept_ra(link: &str) -> String {
    format!("net/ipv6/conf/{link}/accept_ra")
}

/// A node that has its addresses from routers goes on hearing them by the bridge.
fn copy_accept_ra(node: &mut Node, bridge: &Link, uplink: &str) -> Result<(), Error> {
    let hears = node.link(Selector::Name(uplink))?.is_some_and(|uplink| uplink.accepts_routers);
    if hears && let Some(value) = sysctl::read(&accept_ra(uplink)) {
        let _ = sysctl::ensure(&accept_ra(&bridge.name), &value);
    }
    Ok(())
}

/// Whether the bridge cannot have both: one IPv4 address is all it gets, IPv6 subnets must not overlap.
fn in_the_way(present: IpNet, wanted: IpNet) -> bool {
    match (present.addr(), wanted.addr()) {
        (IpAddr::V4(_), IpAddr::V4(_)) => true,
        (IpAddr::V6(a), IpAddr::V6(b)) => wanted.contains(&IpAddr::V6(a)) || present.contains(&IpAddr::V6(b)),
        _ => false,
    }
}

/// Lets the node forward the families that it is the gateway of.
fn forward(node: &mut Node, gateways: &[IpNet]) -> Result<(), Error> {
    for (family, setting) in families(gateways) {
        // Writing makes the kernel go through every interface. One that does not answer is written to.
        if !matches!(node.netlink.get(forwarding(family)), Ok(Some(Forwards(true)))) {
            sysctl::write(setting, "1")?;
        }
    }
    Ok(())
}

/// The families of the gateways, each with the setting that has the node forward it.
fn families(gateways: &[IpNet]) -> Vec<(AddressFamily, &'static str)> {
    let families = [
        (AddressFamily::Inet, "net/ipv4/ip_forward"),
        (AddressFamily::Inet6, "net/ipv6/conf/all/forwarding"),
    ];
    let wanted =
        |family| gateways.iter().any(|gateway| gateway.addr().is_ipv6() == (family == AddressFamily::Inet6));
    families.into_iter().filter(|(family, _)| wanted(*family)).collect()
}

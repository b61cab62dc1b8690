//! The bridge: made as the reference plugin makes it, or taken as it is.

use std::net::IpAddr;

use ipnet::IpNet;
use shunt_agent_api::{Reply, Request};
use shunt_netlink::AddressFamily;
use shunt_netlink::address::{add_gateway, addresses, delete_address};
use shunt_netlink::link::{
    Link, Selector, add_numbered_bridge, set_alias, set_link_up, set_mac, set_promiscuous,
};

use super::forwarding::{accept_ra, forward};
use crate::agent::Agent;
use crate::error::{AttachError, Error};
use crate::mac::Mac;
use crate::node::{BRIDGE_MARK, Node, sysctl};
use crate::plan::BridgePlan;
use crate::random;
use crate::undo::{Journal, MadeBridge, Step};

/// How often an index is tried.
const ATTEMPTS: usize = 10;

/// Indexes that bridges are made with: the kernel, which counts up from 1, comes to them after millions of links.
const FIRST_INDEX: u32 = 1 << 24;
const INDEXES: u32 = 1 << 24;

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
    let made = match node.link(Selector::Name(&plan.name))? {
        Some(_) => None,
        None => make_bridge(node, plan, journal)?,
    };
    let bridge = node.link(Selector::Name(&plan.name))?;
    let bridge = bridge.ok_or_else(|| AttachError::Vanished(plan.name.clone()))?;
    if bridge.kind.as_deref() != Some("bridge") {
        return Err(AttachError::NotABridge(plan.name.clone()).into());
    }
    let new = made == Some(bridge.index);
    if !new {
        journal.push(Step::Bridge(MadeBridge::found(&plan.name, bridge.index)));
    }
    match &plan.inherits_from {
        Some(uplink) => copy_accept_ra(node, &bridge, uplink)?,
        // Routes of this interface are the plugin's.
        None if bridge.accepts_routers => {
            let _ = sysctl::write(&accept_ra(&plan.name), "0");
        }
        None => {}
    }
    let mut changes = Vec::new();
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

/// Makes the bridge and marks it in one datagram, so that an exec that is killed leaves none that is nobody's; answers its index, none where
/// another was quicker. The second message names the bridge by an index that was free: were it by name, it would mark another's.
fn make_bridge(node: &mut Node, plan: &BridgePlan, journal: &mut Journal) -> Result<Option<u32>, Error> {
    let like = Link {
        mtu: plan.mtu.unwrap_or_default(),
        mac: Some(Mac::random().bytes()),
        ..Link::named(&plan.name)
    };
    for _ in 0..ATTEMPTS {
        let index = FIRST_INDEX
            + u32::from_ne_bytes(random::bytes().first_chunk().copied().unwrap_or_default()) % INDEXES;
        if node.link(Selector::Index(index))?.is_some() {
            continue;
        }
        // Whatever becomes of the answer.
        journal.push(Step::Bridge(MadeBridge { new: true, ..MadeBridge::found(&plan.name, index) }));
        let batch = vec![add_numbered_bridge(index, &like), set_alias(Selector::Index(index), BRIDGE_MARK)];
        let mut answers = node.netlink.batch(batch)?.into_iter();
        match answers.next() {
            Some(Err(error)) if error.is_existing() => {
                journal.withdraw_bridge();
                if node.link(Selector::Name(&plan.name))?.is_some() {
                    return Ok(None);
                }
            }
            made => {
                [made, answers.next()].into_iter().flatten().collect::<Result<Vec<_>, _>>()?;
                return Ok(Some(index));
            }
        }
    }
    Err(AttachError::NoFreeIndex(plan.name.clone()).into())
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

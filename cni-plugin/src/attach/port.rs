//! The host's end: handed to the agent, then put into service as a port of the bridge.

use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use shunt_agent_api::{BridgePort, Interface};

use super::bridge::{Found, is_complete};
use super::{AttachError, Node, Plan, PortSettings, Sandbox, configure, enrol, silence};
use crate::error::Error;
use crate::netlink::{InterfaceAddress, Link, LinkWatch, NetlinkError, Selector, requests};

/// How long a port may take to forward; the reference plugin waits as long.
const PORT_PATIENCE: Duration = Duration::from_millis(2550);
/// How long the kernel's word is waited for before it is asked; it comes within a millisecond.
const HEARING: Duration = Duration::from_millis(50);
/// How long an address may be tentative; the reference plugin waits as long.
const ADDRESS_PATIENCE: Duration = Duration::from_secs(5);

/// The port as the agent is told of it.
pub(crate) fn port_of(plan: &Plan, bridge: &Link, host: &Link) -> BridgePort {
    BridgePort {
        key: plan.key.clone(),
        bridge: Interface { name: bridge.name.clone(), index: bridge.index },
        host: Interface { name: host.name.clone(), index: host.index },
        mac: plan.mac.to_string(),
        ips: plan.result.ips.iter().map(|ip| ip.address.address()).collect(),
        mtu: host.mtu,
        netns: Some(plan.netns.clone()),
        peer_up: plan.up,
        masquerade: plan.masquerade.clone(),
        restrictions: plan.restrictions.clone(),
        mappings: plan.mappings.clone(),
        bandwidth: plan.limits.clone(),
        service: plan.service.clone(),
        lease_dir: plan.lease_dir.clone(),
        vlan: None,
    }
}

/// What was prepared while the agent worked.
#[derive(Debug)]
pub(crate) struct Prepared {
    /// Hears of the node's links.
    outside: LinkWatch,
    /// Hears of the container's.
    inside: LinkWatch,
    /// Whether the host's end is a port of the bridge, which has all that it needs.
    pub(crate) enrolled: bool,
}

/// Does what need not wait for the agent's answer: configures the container's end, and makes the host's end a port of a bridge that
/// serves others already. That one stays down, so that nothing reaches the container or leaves it.
pub(crate) fn prepare(
    node: &mut Node,
    sandbox: &mut Sandbox,
    plan: &Plan,
    bridge: &Found,
    host: &Link,
    inner: u32,
) -> Result<Prepared, Error> {
    silence(host);
    configure(node, sandbox, plan, inner)?;
    let inside = sandbox.watch(node)?;
    let enrolled = bridge.serves && is_complete(node, bridge, &plan.bridge);
    if enrolled {
        make_port(node, plan, bridge.link.index, host)?;
    }
    Ok(Prepared { outside: LinkWatch::open()?, inside, enrolled })
}

fn make_port(node: &mut Node, plan: &Plan, bridge: u32, host: &Link) -> Result<(), Error> {
    let settings = PortSettings::new(plan.service.hairpin, &plan.restrictions);
    let changes = enrol(host.index, bridge, settings, Some(plan.mac));
    let refused = |error: NetlinkError| match error.errno() {
        Some(Errno::EXFULL) => AttachError::BridgeFull(plan.bridge.name.clone()).into(),
        _ => Error::from(error),
    };
    node.netlink.ask_all(changes).map(drop).map_err(refused)
}

/// Makes the host's end a port of the bridge, if it is none yet, sets it up, and waits until packets go through to the container and
/// back; answers it as it then is.
pub(crate) fn put_into_service(
    node: &mut Node,
    sandbox: &mut Sandbox,
    plan: &Plan,
    bridge: &Link,
    host: &Link,
    prepared: &Prepared,
) -> Result<Link, Error> {
    let watch = &prepared.outside;
    if !prepared.enrolled {
        make_port(node, plan, bridge.index, host)?;
    }
    // With it the container begins to announce itself, and the kernel does not listen until that is done.
    node.netlink.ask(requests::set_up(Selector::Index(host.index)))?;
    let heard = plan.up.then(|| watch.until_operational(host.index, HEARING)).flatten();
    let link = match heard {
        Some(link) => link,
        None => asked(node, plan, host)?,
    };
    if plan.up && !bridge.operational {
        wait_for_bridge(node, watch, bridge)?;
    }
    if let Some(inner) = host.peer {
        wait_for_carrier(sandbox, &prepared.inside, plan, inner)?;
    }
    Ok(link)
}

/// A bridge comes alive with its first port, and until then what the node sends by it is lost. One that is not alive after
/// that waits for its spanning tree, which no ADD can.
fn wait_for_bridge(node: &mut Node, watch: &LinkWatch, bridge: &Link) -> Result<(), Error> {
    if watch.until_operational(bridge.index, HEARING).is_some() {
        return Ok(());
    }
    let index = Selector::Index(bridge.index);
    poll(PORT_PATIENCE, || Ok(node.link(index)?.filter(|link| link.operational).map(drop))).map(drop)
}

/// Asks until the port forwards.
fn asked(node: &mut Node, plan: &Plan, host: &Link) -> Result<Link, Error> {
    poll(PORT_PATIENCE, || match node.link(Selector::Index(host.index))? {
        None => Err(AttachError::Vanished(host.name.clone()).into()),
        // Without a container end that is up there is no carrier to wait for.
        Some(link) if link.operational || !plan.up => Ok(Some(link)),
        Some(_) => Ok(None),
    })?
    .ok_or_else(|| AttachError::NotOperational(host.name.clone()).into())
}

/// Waits until the container's end sends.
///
/// Its carrier came with the host's end, and the kernel tells that later, from a queue of its own: until then the end has
/// no queueing discipline but the one that drops everything, an ARP request as well, which is not repeated for a second
/// (`linkwatch_do_dev`, net/core/link_watch.c).
///
/// `watch` listens in the container since before the host's end was set up.
pub(crate) fn wait_for_carrier(
    sandbox: &mut Sandbox,
    watch: &LinkWatch,
    plan: &Plan,
    index: u32,
) -> Result<(), Error> {
    if !plan.up || watch.until_operational(index, HEARING).is_some() {
        return Ok(());
    }
    poll(PORT_PATIENCE, || match sandbox.link(Selector::Index(index))? {
        None => Err(AttachError::Vanished(plan.key.ifname.clone()).into()),
        Some(link) => Ok(link.operational.then_some(())),
    })?
    .ok_or_else(|| AttachError::NotOperational(plan.key.ifname.clone()).into())
}

/// Waits until the container's IPv6 addresses can be used.
pub(crate) fn wait_for_addresses(sandbox: &mut Sandbox, plan: &Plan, index: u32) -> Result<(), Error> {
    let Some(ip) = plan.result.ips.iter().find(|ip| ip.address.address().is_ipv6()).filter(|_| plan.up)
    else {
        return Ok(());
    };
    poll(ADDRESS_PATIENCE, || {
        let answers = sandbox.netlink.ask(requests::list_addresses(index, Some(ip.address.address())))?;
        let addresses = InterfaceAddress::all(&answers, index);
        if let Some(duplicate) = addresses.iter().find(|address| address.duplicate && !address.link_local) {
            return Err(AttachError::Duplicate(duplicate.prefix).into());
        }
        let tentative = addresses.iter().any(|address| address.tentative && !address.link_local);
        Ok((!tentative).then_some(()))
    })?
    .ok_or_else(|| AttachError::Duplicate(ip.address).into())
}

/// Asks again and again, at growing intervals; none when `patience` is over.
fn poll<T>(
    patience: Duration,
    mut ask: impl FnMut() -> Result<Option<T>, Error>,
) -> Result<Option<T>, Error> {
    let start = Instant::now();
    let mut pause = Duration::from_micros(100);
    loop {
        if let Some(answer) = ask()? {
            return Ok(Some(answer));
        }
        if start.elapsed() > patience {
            return Ok(None);
        }
        sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

//! The host's end: handed to the agent, then put into service as a port of the bridge.

use std::thread::sleep;
use std::time::{Duration, Instant};

use netlink_packet_route::AddressFamily;
use nix::errno::Errno;
use shunt_agent_api::{BridgePort, FarEnd, Interface, Place};

use super::bridge::{Found, is_complete};
use super::{AttachError, Node, Plan, PortSettings, Sandbox, configure, enrol, settle, silence};
use crate::error::Error;
use crate::netlink::{Answer, InterfaceAddress, Link, LinkWatch, NetlinkError, Request, Selector, requests};

/// How long a port may take to forward; the reference plugin waits as long.
const PORT_PATIENCE: Duration = Duration::from_millis(2550);
/// How long the kernel's word is waited for before it is asked; it comes within a millisecond.
pub(super) const HEARING: Duration = Duration::from_millis(50);
/// How long an address may be tentative; the reference plugin waits as long.
const ADDRESS_PATIENCE: Duration = Duration::from_secs(5);

/// The port as the agent is told of it, but for its place.
pub(crate) fn port_of(plan: &Plan) -> BridgePort {
    let Place { bridge, host, mtu } = Place::default();
    BridgePort {
        key: plan.key.clone(),
        bridge,
        host,
        mac: plan.mac.to_string(),
        ips: plan.result.ips.iter().map(|ip| ip.address.address()).collect(),
        mtu,
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

/// The place of a port: what it is joined to, and its host's end.
pub(crate) fn place_of(bridge: Interface, host: &Link) -> Place {
    Place { bridge, host: interface(host), mtu: host.mtu }
}

/// A link as the agent is told of it.
pub(crate) fn interface(link: &Link) -> Interface {
    Interface { name: link.name.clone(), index: link.index }
}

/// What a bridge is told of which the host's end was born a port.
#[derive(Debug)]
pub(crate) struct Introduction(Vec<Request>);

impl Introduction {
    /// Of a port whose restrictions the bridge has to keep as well, the bridge hears before anybody sets it up; of others there is time.
    pub(crate) fn begin(node: &mut Node, plan: &Plan, host: &Link) -> Result<Self, Error> {
        let Some(_) = host.master else { return Ok(Self(Vec::new())) };
        let introduction = Self(settle(host.index, settings(plan), Some(plan.mac)));
        match settings(plan) == PortSettings::default() {
            true => Ok(introduction),
            false => introduction.finish(node).map(|()| Self(Vec::new())),
        }
    }

    /// Tells it what it was not told yet.
    pub(crate) fn finish(self, node: &mut Node) -> Result<(), Error> {
        node.netlink.ask_all(self.0)?;
        Ok(())
    }
}

/// The container's end, for the agent to set the host's up; none where the kernel has not said where that is, or the container's stays down. Nor where
/// both have the same number, each in its namespace: the kernel takes such a one for a device of its own and looks after it at its leisure
/// (`linkwatch_urgent_event`, net/core/link_watch.c), so that what it says of the one end means nothing for the other.
pub(crate) fn far_end(plan: &Plan, host: &Link) -> Option<FarEnd> {
    let index = host.peer.filter(|index| plan.up && *index != host.index)?;
    Some(FarEnd { index, namespace: host.peer_namespace? })
}

/// Does what need not wait for the agent's answer: configures the container's end. Answers whether the bridge has all that it needs.
///
/// What keeps IPv6 off comes after a request: whoever writes a setting does not wait for the lock of all network configuration, but tries
/// again and again (`restart_syscall`, net/ipv6/addrconf.c), on a processor that the agent may want, which has it. A request waits. The agent sets
/// the host's end up when it is done, as a rule much later; if it should be sooner, what IPv6 has begun there ends with this.
pub(crate) fn prepare(
    node: &mut Node,
    sandbox: &mut Sandbox,
    plan: &Plan,
    bridge: &Found,
    host: &Link,
    inner: u32,
) -> Result<bool, Error> {
    silence(host);
    configure(node, sandbox, plan, inner)?;
    Ok(bridge.serves && is_complete(node, bridge, &plan.bridge))
}

/// How the bridge is to treat the port.
fn settings(plan: &Plan) -> PortSettings {
    PortSettings::new(plan.service.hairpin, &plan.restrictions)
}

/// The kernel does not make an interface a port of the bridge.
pub(super) fn refused(plan: &Plan, error: NetlinkError) -> Error {
    match error.errno() {
        Some(Errno::EXFULL) => AttachError::BridgeFull(plan.bridge.name.clone()).into(),
        _ => error.into(),
    }
}

/// Makes the host's end a port of the bridge, unless it was made one, sets it up, unless it `works`, and waits until packets go through to
/// the container and back; answers it as it then is.
pub(crate) fn put_into_service(
    node: &mut Node,
    sandbox: &mut Sandbox,
    plan: &Plan,
    bridge: &Link,
    host: &Link,
    works: bool,
) -> Result<Link, Error> {
    let changes = match host.master {
        Some(_) => Vec::new(),
        None => enrol(host.index, bridge.index, settings(plan), Some(plan.mac)),
    };
    let link = bring_up(node, sandbox, plan, host, changes, works)?;
    if plan.up && !bridge.operational {
        // A bridge comes alive with its first port, and until then what the node sends by it is lost. One that is not alive
        // after that waits for its spanning tree, which no ADD can.
        operational(LinkWatch::open, || Ok(node.link(Selector::Index(bridge.index))?), bridge.index)?;
    }
    Ok(link)
}

/// Makes `changes` and sets the host's end up, unless it `works`: the agent is asked to set it up only where there are none. Waits until packets get
/// from one end to the other; answers it as it then is.
pub(crate) fn bring_up(
    node: &mut Node,
    sandbox: &mut Sandbox,
    plan: &Plan,
    host: &Link,
    changes: Vec<Request>,
    works: bool,
) -> Result<Link, Error> {
    if works {
        return Ok(Link { up: true, operational: true, ..host.clone() });
    }
    let (link, peer_works) = set_up(node, plan, host, changes)?;
    if !plan.up {
        // Without a container end that is up there is no carrier to wait for.
        return Ok(link);
    }
    let ask = |node: &mut Node| present(node.link(Selector::Index(host.index))?, &host.name);
    let link = match link.operational {
        true => link,
        false => operational(LinkWatch::open, || ask(node), host.index)?
            .ok_or_else(|| AttachError::NotOperational(host.name.clone()))?,
    };
    // Not told so, or a kernel that does not know that question.
    if !peer_works {
        wait_for_carrier(node, sandbox, plan, host)?;
    }
    Ok(link)
}

/// Makes `changes` and sets the host's end up; answers it as it then is, and whether the container's end can send.
fn set_up(
    node: &mut Node,
    plan: &Plan,
    host: &Link,
    mut changes: Vec<Request>,
) -> Result<(Link, bool), Error> {
    // With it the container begins to announce itself, and the kernel does not listen until that is done. Whoever asks in the same
    // breath is there before, and has the kernel look after the carrier at once (`linkwatch_sync_dev`, Linux 6.8).
    let index = Selector::Index(host.index);
    changes.extend([requests::set_up(index), requests::get_link(index)]);
    // In that breath it looks after the container's end as well, which a worker would do otherwise, on this processor.
    let peer = requests::get_peer(host).filter(|_| plan.up);
    let place = changes.len();
    changes.extend(peer);
    let mut answers = node.netlink.batch(changes)?;
    let peer_works =
        answers.split_off(place).into_iter().any(|said| said.is_ok_and(|said| is_operational(&said)));
    let answers = answers.into_iter().collect::<Result<Vec<_>, _>>().map_err(|error| refused(plan, error))?;
    let found = answers.last().and_then(|said| Link::first(said));
    let link = found.ok_or_else(|| AttachError::Vanished(host.name.clone()))?;
    Ok((link, peer_works))
}

/// Waits until the container's end sends.
///
/// Its carrier came with the host's end, and the kernel tells that later, from a queue of its own: until then the end has
/// no queueing discipline but the one that drops everything, an ARP request as well, which is not repeated for a second
/// (`linkwatch_do_dev`, net/core/link_watch.c). Who asks for the link has it done at once (Linux 6.8).
fn wait_for_carrier(node: &Node, sandbox: &mut Sandbox, plan: &Plan, host: &Link) -> Result<(), Error> {
    let Some(index) = host.peer.filter(|_| plan.up) else { return Ok(()) };
    let name = &plan.key.ifname;
    let ask = |sandbox: &mut Sandbox| present(sandbox.link(Selector::Index(index))?, name);
    if ask(sandbox)?.is_some_and(|link| link.operational) {
        return Ok(());
    }
    let watch = sandbox.watch(node)?;
    operational(|| Ok(watch), || ask(sandbox), index)?
        .ok_or_else(|| AttachError::NotOperational(name.clone()))?;
    Ok(())
}

fn is_operational(said: &[Answer]) -> bool {
    Link::first(said).is_some_and(|link| link.operational)
}

/// A link that was asked for, and has to be there.
fn present(link: Option<Link>, name: &str) -> Result<Option<Link>, Error> {
    link.map(Some).ok_or_else(|| AttachError::Vanished(name.to_owned()).into())
}

/// Waits until a link can carry packets: asks once, from when on it listens, and asks again only where it hears nothing. None if the
/// link does not become so.
fn operational(
    listen: impl FnOnce() -> Result<LinkWatch, NetlinkError>,
    mut ask: impl FnMut() -> Result<Option<Link>, Error>,
    index: u32,
) -> Result<Option<Link>, Error> {
    let watch = listen()?;
    let is_so = |link: &Link| link.operational;
    if let Some(link) = ask()?.filter(is_so).or_else(|| watch.until_operational(index, HEARING, None)) {
        return Ok(Some(link));
    }
    poll(PORT_PATIENCE, || Ok(ask()?.filter(is_so)))
}

/// Waits until the container's IPv6 addresses can be used.
pub(crate) fn wait_for_addresses(sandbox: &mut Sandbox, plan: &Plan, index: u32) -> Result<(), Error> {
    let Some(ip) = plan.result.ips.iter().find(|ip| ip.address.address().is_ipv6()).filter(|_| plan.up)
    else {
        return Ok(());
    };
    poll(ADDRESS_PATIENCE, || {
        let answers = sandbox.netlink.ask(requests::list_addresses(index, AddressFamily::Inet6))?;
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

//! What an ADD waits for once its port serves.

use std::thread::sleep;
use std::time::{Duration, Instant};

use shunt_netlink::AddressFamily;
use shunt_netlink::address::{Address, addresses};
use shunt_netlink::link::{Link, Selector};

use crate::error::{AttachError, Error};
use crate::node::{Node, Sandbox};
use crate::plan::Plan;

/// How long a bridge may take to come alive; the reference plugin waits as long for a port.
const BRIDGE_PATIENCE: Duration = Duration::from_millis(2550);
/// How long an address may be tentative; the reference plugin waits as long.
const ADDRESS_PATIENCE: Duration = Duration::from_secs(5);

/// Waits until the node can send by the bridge: a bridge comes alive with its first port, and what the node sends before is lost. One that
/// is not alive after that waits for its spanning tree, which no ADD can.
pub(crate) fn wait_for_bridge(node: &mut Node, plan: &Plan, bridge: &Link) -> Result<(), Error> {
    if plan.up && !bridge.operational {
        let index = Selector::Index(bridge.index);
        poll(BRIDGE_PATIENCE, || Ok(node.link(index)?.filter(|link| link.operational)))?;
    }
    Ok(())
}

/// Waits until the container's IPv6 addresses can be used.
pub(crate) fn wait_for_addresses(sandbox: &mut Sandbox, plan: &Plan, index: u32) -> Result<(), Error> {
    let Some(ip) = plan.result.ips.iter().find(|ip| ip.address.addr().is_ipv6()).filter(|_| plan.up) else {
        return Ok(());
    };
    poll(ADDRESS_PATIENCE, || {
        let mut addresses = sandbox.netlink.list(addresses(index, AddressFamily::Inet6))?;
        addresses.retain(|address| address.index == index && !address.is_of_link());
        if let Some(duplicate) = addresses.iter().find(|address| address.is_duplicate()) {
            return Err(AttachError::Duplicate(duplicate.prefix).into());
        }
        let tentative = addresses.iter().any(Address::is_tentative);
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

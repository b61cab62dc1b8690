//! The container's end: settings, addresses, up, routes.

use super::{Node, Plan, Sandbox};
use crate::error::Error;
use crate::netlink::{Selector, requests};
use crate::sysctl::{self, SysctlError};

/// Configures the container's end, whose ifindex in there is `index`.
///
/// The requests go out as one batch: what fails is taken back by deleting the veth, whatever else was done.
pub(crate) fn configure(node: &Node, sandbox: &mut Sandbox, plan: &Plan, index: u32) -> Result<(), Error> {
    if plan.layer3 {
        node.namespace.within(&sandbox.namespace, || settings(plan))??;
    }
    let addresses = plan.result.ips.iter().map(|ip| requests::add_address(index, ip.address));
    let up = plan.up.then(|| requests::set_up(Selector::Index(index)));
    let routes = plan.routes.iter().map(|route| requests::add_route(index, route));
    sandbox.netlink.ask_all(addresses.chain(up).chain(routes).collect())?;
    Ok(())
}

fn settings(plan: &Plan) -> Result<(), SysctlError> {
    let ifname = &plan.key.ifname;
    // A kernel, or a container, without IPv6 has no such settings, and without IPv6 addresses needs none.
    if plan.detect_duplicates {
        let _ = sysctl::write(&format!("net/ipv6/conf/{ifname}/enhanced_dad"), "1");
        let _ = sysctl::write(&format!("net/ipv6/conf/{ifname}/accept_dad"), "1");
    } else {
        let _ = sysctl::write(&format!("net/ipv6/conf/{ifname}/accept_dad"), "0");
    }
    let _ = sysctl::write(&format!("net/ipv4/conf/{ifname}/arp_notify"), "1");
    if plan.result.ips.iter().any(|ip| ip.address.address().is_ipv6()) {
        sysctl::ensure("net/ipv6/conf/lo/disable_ipv6", "0")?;
        sysctl::ensure(&format!("net/ipv6/conf/{ifname}/disable_ipv6"), "0")?;
        sysctl::write(&format!("net/ipv6/conf/{ifname}/keep_addr_on_down"), "1")?;
    }
    Ok(())
}

//! The container's end: settings, addresses, up, routes.

use shunt_netlink::address::add_address;
use shunt_netlink::link::{Selector, set_link_up, set_mac};

use crate::error::Error;
use crate::node::sysctl::{self, SysctlError};
use crate::node::{Node, Sandbox, add_route};
use crate::plan::Plan;

/// Configures the container's end, whose ifindex in there is `index`.
///
/// Neighbours hear of its IPv6 addresses as they become valid.
pub(crate) fn configure(node: &Node, sandbox: &mut Sandbox, plan: &Plan, index: u32) -> Result<(), Error> {
    if plan.layer3 {
        node.within(sandbox, || notify_of_ipv6(plan))?;
    }
    configure_silently(node, sandbox, plan, index)
}

/// The same, and neighbours hear of nothing before [`announce`]: what the kernel would say when an address becomes valid it says once
/// more there.
///
/// The requests go out as one batch: what fails is taken back by deleting the veth, whatever else was done.
pub(crate) fn configure_silently(
    node: &Node,
    sandbox: &mut Sandbox,
    plan: &Plan,
    index: u32,
) -> Result<(), Error> {
    if plan.layer3 {
        node.within(sandbox, || settings(plan))??;
    }
    let addresses = plan.result.ips.iter().map(|ip| add_address(index, ip.address));
    let up = plan.up.then(|| set_link_up(Selector::Index(index)));
    let routes = plan.routes.iter().map(|route| add_route(index, route));
    sandbox.netlink.run_all(addresses.chain(up).chain(routes).collect())?;
    Ok(())
}

/// Has the container's end announce its addresses to neighbours who may know a predecessor: by gratuitous ARP and unsolicited
/// neighbour advertisements, which the kernel sends where the MAC address is set, and be it to the same. As the interface came up, no
/// packet got through. An address that is not valid yet is announced when it is.
pub(crate) fn announce(node: &Node, sandbox: &mut Sandbox, plan: &Plan, index: u32) -> Result<(), Error> {
    if plan.layer3 {
        node.within(sandbox, || notify_of_ipv6(plan))?;
    }
    if plan.up && plan.layer3 && !plan.result.ips.is_empty() {
        sandbox.netlink.run(set_mac(index, plan.mac.bytes()))?;
    }
    Ok(())
}

/// Has the kernel announce IPv6 addresses when they become valid, and when the interface gets another MAC address.
fn notify_of_ipv6(plan: &Plan) {
    // A kernel without IPv6 has no such setting.
    let _ = sysctl::write(&format!("net/ipv6/conf/{}/ndisc_notify", plan.key.ifname), "1");
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
    // It announces its addresses when it gets another MAC address, and at the end of this ADD ([`announce`]). So it does those of IPv6, but
    // these the kernel announces also when they become valid ([`notify_of_ipv6`]).
    let _ = sysctl::write(&format!("net/ipv4/conf/{ifname}/arp_notify"), "1");
    if plan.result.ips.iter().any(|ip| ip.address.addr().is_ipv6()) {
        sysctl::ensure("net/ipv6/conf/lo/disable_ipv6", "0")?;
        sysctl::ensure(&format!("net/ipv6/conf/{ifname}/disable_ipv6"), "0")?;
        sysctl::write(&format!("net/ipv6/conf/{ifname}/keep_addr_on_down"), "1")?;
    }
    Ok(())
}

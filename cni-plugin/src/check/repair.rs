//! Putting an attachment right, fault by fault.

use shunt_netlink::address::{add_address, add_gateway};
use shunt_netlink::link::{Selector, set_link_up, set_promiscuous};

use crate::error::{Error, Fault};
use crate::node::{BridgeSide, Node, Sandbox, add_route};

/// Repairs what can be repaired in place; answers what cannot. `index` is the container end's ifindex and
/// `station` its address.
///
/// Addresses come before routes, and links before both, because the kernel wants them in this order.
pub(super) fn repair(
    faults: Vec<Fault>,
    node: &mut Node,
    sandbox: &mut Sandbox,
    index: u32,
    (station, is_fixed): (Option<[u8; 6]>, bool),
) -> Result<Vec<Fault>, Error> {
    let mut left = Vec::new();
    let (mut outside, mut inside, mut routes) = (Vec::new(), Vec::new(), Vec::new());
    for fault in faults {
        match fault {
            Fault::Down(_) => inside.push(set_link_up(Selector::Index(index))),
            Fault::NoAddress(address) => inside.push(add_address(index, address)),
            Fault::NoRoute(route) => routes.push(add_route(index, &route)),
            Fault::HostDown { index, .. } => outside.push(set_link_up(Selector::Index(index))),
            Fault::NotAPort { index, master, settings, .. }
            | Fault::OtherSettings { index, master, settings, .. } => {
                let side = BridgeSide { index, bridge: master, flags: settings, station, is_fixed };
                outside.extend(side.add_and_set_up(node)?);
            }
            Fault::NotPromiscuous { index, .. } => outside.push(set_promiscuous(index)),
            Fault::NoGateway { index, address, .. } => outside.push(add_gateway(index, address)),
            fault => left.push(fault),
        }
    }
    node.netlink.run_all(outside)?;
    inside.append(&mut routes);
    sandbox.netlink.run_all(inside)?;
    Ok(left)
}

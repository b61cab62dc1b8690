//! The veth pair, its one end born inside the container under its final name.

use std::os::fd::AsFd;

use shunt_netlink::Answers;
use shunt_netlink::link::{Link, Selector, Veth, VethEnd, add_veth, set_alias};

use crate::error::{AttachError, Error};
use crate::node::{Alias, Node, Sandbox, sysctl};
use crate::plan::Plan;
use crate::random;
use crate::undo::{Journal, Step};

/// How often a random name is tried; one in four thousand million is taken.
const ATTEMPTS: usize = 10;

/// A random name for the host's end.
fn veth_name() -> String {
    let [a, b, c, d, ..] = random::bytes();
    format!("veth{a:02x}{b:02x}{c:02x}{d:02x}")
}

/// Keeps the node's IPv6 off the host's end, which is a port and no more: it has no address, announces nothing and believes
/// nothing, and the node's routes do not become more with each container. A kernel without IPv6 has no such setting.
pub(crate) fn disable_ipv6(host: &Link) {
    let _ = sysctl::write(&format!("net/ipv6/conf/{}/disable_ipv6", host.name), "1");
}

/// Makes the pair, both ends down, and marks it in the same datagram; answers the host's end. An exec that is killed leaves no link behind of
/// which nobody can tell whose it is.
pub(crate) fn make_veth(
    node: &mut Node,
    sandbox: &Sandbox,
    plan: &Plan,
    journal: &mut Journal,
) -> Result<Link, Error> {
    let mark = Alias::of(&plan.key);
    for _ in 0..ATTEMPTS {
        let name = veth_name();
        // The mark must not be written to another link of this name.
        if !node.netlink.has_no_link(&name)? {
            continue;
        }
        let add = add_veth(&Veth {
            end: VethEnd { name: &name, ..VethEnd::default() },
            peer: VethEnd {
                name: &plan.key.ifname,
                mac: Some(plan.mac.bytes()),
                namespace: Some(sandbox.namespace.as_fd()),
                ..VethEnd::default()
            },
            mtu: plan.mtu,
        });
        // Whatever becomes of the answer.
        journal.push(Step::Veth { name: name.clone(), mark: mark.clone() });
        let batch = vec![add.any(), set_alias(Selector::Name(&name), &mark)];
        let mut answers = node.netlink.batch(batch)?.into_iter();
        let mut next = || answers.next().unwrap_or_else(|| Ok(Answers::default()));
        let (made, marked) = (next(), next());
        match made {
            Ok(shown) => {
                marked?;
                let link = match shown.first() {
                    Some(shown) => Some(shown),
                    None => node.link(Selector::Name(&name))?,
                };
                return Ok(link.ok_or(AttachError::Vanished(name))?);
            }
            Err(error) if error.is_existing() && !node.netlink.has_no_link(&name)? => {}
            Err(error) if error.is_existing() => {
                return Err(AttachError::InterfaceExists(plan.key.ifname.clone()).into());
            }
            Err(error) => return Err(error.into()),
        }
    }
    Err(AttachError::NoFreeName.into())
}

/// The container's end, by its ifindex there.
pub(crate) fn inner(host: &Link) -> Result<u32, AttachError> {
    host.peer.ok_or_else(|| AttachError::Vanished(host.name.clone()))
}

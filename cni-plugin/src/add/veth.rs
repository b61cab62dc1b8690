//! The veth pair, its one end born inside the container under its final name.

use std::os::fd::AsFd;

use shunt_netlink::link::{Link, Selector, Veth, VethEnd, add_veth, set_alias};
use shunt_netlink::{Answers, NetlinkError};

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

/// Makes the pair, both ends down, and marks it; answers the host's end.
pub(crate) fn make_veth(
    node: &mut Node,
    sandbox: &Sandbox,
    plan: &Plan,
    journal: &mut Journal,
) -> Result<Link, Error> {
    let (host, marked) = create(node, sandbox, plan)?;
    journal.push(Step::Veth { index: host.index });
    marked?;
    Ok(host)
}

/// Keeps the node's IPv6 off the host's end, which is a port and no more: it has no address, announces nothing and believes
/// nothing, and the node's routes do not become more with each container. A kernel without IPv6 has no such setting.
pub(crate) fn disable_ipv6(host: &Link) {
    let _ = sysctl::write(&format!("net/ipv6/conf/{}/disable_ipv6", host.name), "1");
}

/// The pair is made and marked in one piece: an exec that is killed leaves no link behind of which GC cannot tell whose it is.
fn create(
    node: &mut Node,
    sandbox: &Sandbox,
    plan: &Plan,
) -> Result<(Link, Result<(), NetlinkError>), Error> {
    let alias = Alias::of(&plan.key);
    for _ in 0..ATTEMPTS {
        let name = veth_name();
        // The alias must not be written to another link of this name.
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
        let mark = alias.as_deref().map(|alias| set_alias(Selector::Name(&name), alias));
        let mut answers = node.netlink.batch([add.any()].into_iter().chain(mark).collect())?.into_iter();
        let mut next = || answers.next().unwrap_or_else(|| Ok(Answers::default()));
        let (made, marked) = (next(), next());
        match made {
            Ok(shown) => {
                let link = match shown.first() {
                    Some(shown) => Some(shown),
                    None => node.link(Selector::Name(&name))?,
                };
                return Ok((link.ok_or(AttachError::Vanished(name))?, marked.map(drop)));
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

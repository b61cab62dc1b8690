//! The veth pair, its one end born inside the container under its final name.

use std::os::fd::AsFd;

use nix::errno::Errno;

use super::{Alias, AttachError, Journal, Node, Plan, Sandbox, Step};
use crate::error::Error;
use crate::netlink::{Link, Selector, requests};
use crate::random;
use crate::sysctl;

/// How often a random name is tried; one in four thousand million is taken.
const ATTEMPTS: usize = 10;

/// Makes the pair, both ends down, and marks it; answers the host's end.
pub(crate) fn make_veth(
    node: &mut Node,
    sandbox: &Sandbox,
    plan: &Plan,
    journal: &mut Journal,
) -> Result<Link, Error> {
    let host = create(node, sandbox, plan)?;
    journal.push(Step::Veth { index: host.index });
    if let Some(alias) = Alias::of(&plan.key) {
        node.netlink.ask(requests::set_alias(Selector::Index(host.index), &alias))?;
    }
    // Routes of this interface are the plugin's. A kernel without IPv6 has no such setting.
    let _ = sysctl::write(&format!("net/ipv6/conf/{}/accept_ra", host.name), "0");
    Ok(host)
}

fn create(node: &mut Node, sandbox: &Sandbox, plan: &Plan) -> Result<Link, Error> {
    for _ in 0..ATTEMPTS {
        let [a, b, c, d, ..] = random::bytes();
        let name = format!("veth{a:02x}{b:02x}{c:02x}{d:02x}");
        let add = requests::add_veth(&requests::Veth {
            host: &name,
            container: &plan.key.ifname,
            namespace: sandbox.namespace.as_fd(),
            mac: plan.mac,
            mtu: plan.mtu,
        });
        let mut answers =
            node.netlink.batch(vec![add, requests::get_link(Selector::Name(&name))])?.into_iter();
        let (made, found) =
            (answers.next().unwrap_or(Ok(Vec::new())), answers.next().unwrap_or(Ok(Vec::new())));
        match made {
            Ok(_) => return Link::first(&found?).ok_or_else(|| AttachError::Vanished(name).into()),
            Err(error) if error.errno() == Some(Errno::EEXIST) && found.is_ok() => {}
            Err(error) if error.errno() == Some(Errno::EEXIST) => {
                return Err(AttachError::InterfaceExists(plan.key.ifname.clone()).into());
            }
            Err(error) => return Err(error.into()),
        }
    }
    Err(AttachError::NoFreeName.into())
}

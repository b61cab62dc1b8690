//! The reference `loopback` plugin, which containerd calls for every pod: sets `lo` of the container up.
//!
//! As the reference has it, the interface is `lo` whatever name the runtime says, a result before it is passed through, and a `lo` with an address
//! beyond the loopback's is an error. A DEL does not mind that the namespace is gone, or the interface.

use std::path::Path;

use shunt_netlink::AddressFamily;
use shunt_netlink::address::addresses;
use shunt_netlink::link::{Link, Selector, set_link_down, set_link_up};

use crate::call::{Call, Verb};
use crate::config::Config;
use crate::error::{AttachError, CheckError, Error, Fault};
use crate::node::{NamespaceError, Node, NodeError, Sandbox};
use crate::result::{AddResult, Interface, Ip};

/// The interface.
const LO: &str = "lo";

/// Does a verb. There is nothing to collect, and nothing that an ADD could lack.
pub(crate) fn run(config: &Config, call: &Call) -> Result<Option<String>, Error> {
    match call.verb {
        Verb::Add => return Ok(Some(add(config, call)?.print(config.version)?)),
        Verb::Del => del(call)?,
        Verb::Check => check(call)?,
        Verb::Finalize => drop(set_up(&mut open(call)?)?),
        _ => {}
    }
    Ok(None)
}

fn add(config: &Config, call: &Call) -> Result<AddResult, Error> {
    let mut sandbox = open(call)?;
    let link = set_up(&mut sandbox)?;
    let found = sandbox.netlink.list(addresses(link.index, AddressFamily::Unspec))?;
    let found = found.into_iter().filter(|address| address.index == link.index && !address.is_of_link());
    let prefixes: Vec<_> = found.map(|address| address.prefix).collect();
    if let Some(other) = prefixes.iter().find(|prefix| !prefix.addr().is_loopback()) {
        return Err(AttachError::NoLoopback { address: *other }.into());
    }
    if let Some(previous) = config.prev_result()? {
        return Ok(previous);
    }
    let interface = Interface {
        name: LO.to_owned(),
        mac: "00:00:00:00:00:00".to_owned(),
        sandbox: call.netns.clone(),
        ..Interface::default()
    };
    let ip = |address| Ip { interface: Some(0), address, gateway: None };
    Ok(AddResult {
        interfaces: vec![interface],
        ips: prefixes.into_iter().map(ip).collect(),
        ..AddResult::default()
    })
}

fn del(call: &Call) -> Result<(), Error> {
    if call.netns.is_empty() {
        return Ok(());
    }
    match open(call) {
        Err(Error::Node(NodeError::Namespace(NamespaceError::Gone(_)))) => Ok(()),
        Err(error) => Err(error),
        Ok(mut sandbox) => {
            // A container with the right may have given it another name.
            match sandbox.link(Selector::Name(LO))? {
                Some(link) => Ok(sandbox.netlink.run(set_link_down(link.index))?),
                None => Ok(()),
            }
        }
    }
}

fn check(call: &Call) -> Result<(), Error> {
    if find(&mut open(call)?)?.up { Ok(()) } else { Err(missing(Fault::Down)) }
}

/// Never the node's own namespace, whatever the runtime allows: its loopback is not a container's to set down.
fn open(call: &Call) -> Result<Sandbox, Error> {
    Ok(Node::open()?.sandbox(Path::new(&call.netns), false)?)
}

fn set_up(sandbox: &mut Sandbox) -> Result<Link, Error> {
    let link = find(sandbox)?;
    sandbox.netlink.run(set_link_up(Selector::Index(link.index)))?;
    Ok(link)
}

fn find(sandbox: &mut Sandbox) -> Result<Link, Error> {
    sandbox.link(Selector::Name(LO))?.ok_or_else(|| missing(Fault::NoInterface))
}

fn missing(fault: fn(String) -> Fault) -> Error {
    CheckError(vec![fault(LO.to_owned())]).into()
}

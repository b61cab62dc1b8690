//! What an ADD has done, and how to take it back: in reverse, going on past errors.

use std::path::Path;

use ipnet::IpNet;
use shunt_agent_api::{AttachmentKey, Request};
use shunt_leases::{Lock, Sharing};
use shunt_netlink::link::{Selector, set_link_down};

use crate::agent::{Agent, is_away};
use crate::error::Error;
use crate::ipam::Ipam;
use crate::node::{BRIDGE_MARK, Node, NodeError, Sandbox, lock_bridge};

/// One thing that was done.
#[derive(Debug)]
pub(crate) enum Step {
    /// Addresses were asked for; a plugin that failed may hold some nevertheless.
    Addresses,
    /// The bridge was made, or made more of.
    Bridge(MadeBridge),
    /// The veth pair was asked for; where it was made its host's end has the mark.
    Veth {
        /// The host's end.
        name: String,
        /// The attachment's mark.
        mark: String,
    },
    /// A device was made in the container.
    Device {
        /// Its name there.
        name: String,
    },
    /// The agent was asked to attach.
    Attached {
        /// The attachment.
        key: AttachmentKey,
        /// The host's end.
        host: u32,
    },
}

/// What an ADD changed about a bridge, to be undone only while no other attachment uses it.
#[derive(Debug)]
pub(crate) struct MadeBridge {
    /// The bridge.
    pub(crate) name: String,
    pub(crate) index: u32,
    /// Whether the bridge itself is new.
    pub(crate) new: bool,
    /// Addresses that are new.
    pub(crate) addresses: Vec<IpNet>,
}

impl MadeBridge {
    /// A bridge that nothing is changed about yet.
    pub(crate) fn found(name: &str, index: u32) -> Self {
        Self { name: name.to_owned(), index, new: false, addresses: Vec::new() }
    }
}

/// Everything that was done, in order.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    steps: Vec<Step>,
}

/// Where it was done.
#[derive(Debug)]
pub(crate) struct Places<'a> {
    pub(crate) node: &'a mut Node,
    pub(crate) sandbox: &'a mut Sandbox,
    pub(crate) agent: &'a mut Agent,
}

impl Journal {
    /// Notes a step. To be called as soon as there is something to take back.
    pub(crate) fn push(&mut self, step: Step) {
        self.steps.push(step);
    }

    /// Notes an address that the bridge has got.
    pub(crate) fn add_address(&mut self, added: IpNet) {
        for step in &mut self.steps {
            if let Step::Bridge(made) = step {
                made.addresses.push(added);
            }
        }
    }

    /// Takes the note of a bridge back: it is another's.
    pub(crate) fn withdraw_bridge(&mut self) {
        self.steps.retain(|step| !matches!(step, Step::Bridge(_)));
    }

    /// Takes the note of an attachment back: another ADD made it.
    pub(crate) fn withdraw_attached(&mut self) {
        self.steps.retain(|step| !matches!(step, Step::Attached { .. }));
    }

    /// Takes everything back; answers what could not be. The `bridge`, where it is held, is until no port of this ADD is left on it: somebody
    /// else may wait to see whether the one that it made is idle. Nobody waits for an IPAM.
    pub(crate) fn undo(
        &mut self,
        mut places: Places<'_>,
        ipam: &Ipam<'_>,
        mut bridge: Option<Lock>,
    ) -> Vec<Error> {
        let steps = std::mem::take(&mut self.steps).into_iter().rev();
        steps.filter_map(|step| undo(step, &mut places, ipam, &mut bridge).err()).collect()
    }
}

fn undo(
    step: Step,
    places: &mut Places<'_>,
    ipam: &Ipam<'_>,
    bridge: &mut Option<Lock>,
) -> Result<(), Error> {
    match step {
        Step::Addresses => {
            drop(bridge.take());
            ipam.del().map_err(Error::from)
        }
        Step::Bridge(made) => {
            drop(bridge.take());
            undo_bridge(places.node, places.agent.socket(), &made)
        }
        Step::Veth { name, mark } => match places.node.link(Selector::Name(&name))? {
            Some(link) if link.alias.as_ref() == Some(&mark) => {
                Ok(places.node.delete(Selector::Index(link.index))?)
            }
            _ => Ok(()),
        },
        Step::Device { name } => Ok(places.sandbox.delete(Selector::Name(&name))?),
        Step::Attached { key, host } => {
            // Without its programs the port must not forward. A link that is gone forwards nothing.
            let _gone = places.node.netlink.run(set_link_down(host));
            undo_attach(places.agent, key)
        }
    }
}

fn undo_attach(agent: &mut Agent, key: AttachmentKey) -> Result<(), Error> {
    // The connection may have failed with the request.
    agent.disconnect();
    match agent.ask(Request::Detach { key, link: None }) {
        Err(error) if !is_away(&error) => Err(error.into()),
        // The link is deleted as well.
        _ => Ok(()),
    }
}

fn undo_bridge(node: &mut Node, socket: &Path, made: &MadeBridge) -> Result<(), Error> {
    if !made.new && made.addresses.is_empty() {
        return Ok(());
    }
    // Whoever found the bridge as this ADD left it has put a port on it, or fails and does not need it.
    let _lock = lock_bridge(socket, &made.name, Sharing::Exclusive).map_err(NodeError::from)?;
    if made.new {
        // It may not have been made, or somebody else made it meanwhile.
        let found = node.link(Selector::Index(made.index))?;
        let is_it =
            found.is_some_and(|link| link.name == made.name && link.alias.as_deref() == Some(BRIDGE_MARK));
        if is_it && node.ports(made.index)? == 0 {
            node.delete(Selector::Index(made.index))?;
        }
        return Ok(());
    }
    // An operator's bridge has ports of its own, which do not need them.
    if node.attachments(made.index)? != 0 {
        return Ok(());
    }
    for address in &made.addresses {
        node.take_address(made.index, *address)?;
    }
    Ok(())
}

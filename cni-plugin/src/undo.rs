//! What an ADD has done, and how to take it back: in reverse, going on past errors.

use std::fs::File;

use ipnet::IpNet;
use nix::fcntl::Flock;
use shunt_agent_api::{AttachmentKey, ClientError, Request};
use shunt_netlink::address::delete_address;
use shunt_netlink::link::{Selector, set_link_down};

use crate::agent::Agent;
use crate::error::Error;
use crate::ipam::Ipam;
use crate::node::{Node, Sandbox};

/// One thing that was done.
#[derive(Debug)]
pub(crate) enum Step {
    /// Addresses were asked for; a plugin that failed may hold some nevertheless.
    Addresses,
    /// The bridge was made, or made more of.
    Bridge(MadeBridge),
    /// The veth pair was made.
    Veth {
        /// The host's end.
        index: u32,
    },
    /// A device was made in the container.
    Device {
        /// Its index there.
        index: u32,
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
    pub(crate) index: u32,
    /// Whether the bridge itself is new.
    pub(crate) new: bool,
    /// Addresses that are new.
    pub(crate) addresses: Vec<IpNet>,
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

    /// Notes that the agent is asked to attach; once, however often it is.
    pub(crate) fn push_attached(&mut self, key: &AttachmentKey, host: u32) {
        if !self.steps.iter().any(|step| matches!(step, Step::Attached { .. })) {
            self.push(Step::Attached { key: key.clone(), host });
        }
    }

    /// Takes that note back: another ADD made the attachment.
    pub(crate) fn withdraw_attached(&mut self) {
        self.steps.retain(|step| !matches!(step, Step::Attached { .. }));
    }

    /// Takes everything back; answers what could not be. `bridges`, where they are held, are until no port of this ADD is left on any: somebody
    /// else may wait to see whether the one that it made is idle. Nobody waits for an IPAM that is a program.
    pub(crate) fn undo(
        &mut self,
        mut places: Places<'_>,
        ipam: &Ipam<'_>,
        mut bridges: Option<Flock<File>>,
    ) -> Vec<Error> {
        let steps = std::mem::take(&mut self.steps).into_iter().rev();
        steps.filter_map(|step| undo(step, &mut places, ipam, &mut bridges).err()).collect()
    }
}

fn undo(
    step: Step,
    places: &mut Places<'_>,
    ipam: &Ipam<'_>,
    bridges: &mut Option<Flock<File>>,
) -> Result<(), Error> {
    match step {
        Step::Addresses => {
            drop(bridges.take());
            ipam.del().map_err(Error::from)
        }
        Step::Bridge(made) => {
            drop(bridges.take());
            undo_bridge(places.node, &made)
        }
        Step::Veth { index } => Ok(places.node.delete(Selector::Index(index))?),
        Step::Device { index } => Ok(places.sandbox.delete(Selector::Index(index))?),
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
        // An agent that ended over this finishes at its next start, when it sees that the link is gone. One of another
        // version was not told either.
        Ok(_)
        | Err(ClientError::Silent { .. } | ClientError::Unreachable { .. } | ClientError::Version(_)) => {
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}

fn undo_bridge(node: &mut Node, made: &MadeBridge) -> Result<(), Error> {
    if !made.new && made.addresses.is_empty() {
        return Ok(());
    }
    // Whoever found the bridge as this ADD left it has put a port on it, or fails and does not need it.
    let _lock = node.lock_exclusive()?;
    if node.ports(made.index)? != 0 {
        return Ok(());
    }
    if made.new {
        return Ok(node.delete(Selector::Index(made.index))?);
    }
    let removals = made.addresses.iter().map(|address| delete_address(made.index, *address));
    node.netlink.run_all(removals.collect())?;
    Ok(())
}

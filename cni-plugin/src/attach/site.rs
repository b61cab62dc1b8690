//! What an ADD works with: both namespaces, the agent, and a note of all that was done.

use std::fs::File;

use nix::fcntl::Flock;
use shunt_agent_api::{
    AgentError, AttachmentKey, BridgePort, ClientError, ErrorKind, FarEnd, Place, Reply, Request,
};

use super::{AttachError, Journal, Node, Sandbox};
use crate::agent::Line;
use crate::config::Config;
use crate::error::Error;
use crate::ipam::Ipam;
use crate::netlink::{Link, requests};

/// Where an attachment is made, and what was done there.
#[derive(Debug)]
pub(crate) struct Site<'a> {
    pub(crate) node: &'a mut Node,
    pub(crate) sandbox: &'a mut Sandbox,
    pub(crate) line: Line,
    pub(crate) journal: Journal,
    /// While it is held, a bridge on which the interface is not yet a port is not taken down.
    bridges: Option<Flock<File>>,
    /// Whether the interface was never in service, so that nobody has a hand in it.
    is_new: bool,
}

impl<'a> Site<'a> {
    /// Nothing is done yet, and the agent not asked.
    pub(crate) fn new(config: &Config, node: &'a mut Node, sandbox: &'a mut Sandbox) -> Self {
        let (line, journal) = (Line::open(config), Journal::default());
        Self { node, sandbox, line, journal, bridges: None, is_new: true }
    }

    /// Holds off those who would take down an idle bridge, until this is [let go](Self::let_go), done or undone.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn hold_bridges(&mut self) -> Result<(), AttachError> {
        if self.bridges.is_none() {
            self.bridges = Some(self.node.lock_shared()?);
        }
        Ok(())
    }

    /// Holds them off no more.
    pub(crate) fn let_go(&mut self) {
        self.bridges = None;
    }

    /// Has the agent take a port at its place, and set its host's end up where `far_end` is said; does meanwhile what need not wait for its
    /// answer. Answers what came of both.
    ///
    /// # Errors
    /// What the agent or `meanwhile` says, the agent's first.
    pub(crate) fn attach<T>(
        &mut self,
        port: BridgePort,
        place: Place,
        far_end: Option<FarEnd>,
        meanwhile: impl FnOnce(&mut Node, &mut Sandbox) -> Result<T, Error>,
    ) -> Result<(Reply, T), Error> {
        // Nothing else is asked of it, unless something goes wrong.
        let (mut agent, announced) = self.line.hang_up()?;
        self.journal.push_attached(&port.key);
        let (is_new, set_up) = (self.is_new, far_end);
        agent.send_last(if announced.as_ref() == Some(&port) {
            Request::AttachAnnounced { place, is_new, set_up }
        } else {
            Request::Attach { port: port.at(place), is_new, set_up }
        })?;
        let done = meanwhile(self.node, self.sandbox);
        let attached = agent.receive().inspect_err(|error| {
            if matches!(error, ClientError::Refused(AgentError { kind: ErrorKind::Exists, .. })) {
                // What is attached under this key is not this ADD's to detach.
                self.journal.withdraw_attached();
            }
        })?;
        Ok((attached, done?))
    }

    /// Takes an interface that was attached without addresses out of service; it is attached once more with them.
    ///
    /// # Errors
    /// What the kernel or the agent says.
    pub(crate) fn set_aside(&mut self, key: &AttachmentKey, host: &Link) -> Result<(), Error> {
        self.is_new = false;
        self.node.netlink.ask(requests::set_down(host.index))?;
        self.line.agent()?.ask(Request::Detach { key: key.clone(), link: None })?;
        Ok(())
    }

    /// Takes everything back; answers what could not be.
    pub(crate) fn undo(mut self, ipam: &Ipam<'_>) -> Vec<Error> {
        self.journal.undo(self.node, &mut self.line, ipam, self.bridges)
    }
}

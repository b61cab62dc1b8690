//! What an ADD works with: both namespaces, the agent, and a note of all that was done.

use shunt_agent_api::{AgentError, BridgePort, ClientError, ErrorKind, Reply, Request};
use shunt_leases::{Lock, Sharing};

use crate::agent::Agent;
use crate::error::{AttachError, Error};
use crate::ipam::Ipam;
use crate::node::{Node, NodeError, Sandbox, lock_bridge};
use crate::undo::{Journal, Places, Step};

/// Where an attachment is made, and what was done there.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) node: Node,
    pub(crate) sandbox: Sandbox,
    pub(crate) agent: Agent,
    pub(crate) journal: Journal,
    /// While it is held, the bridge on which the interface is not yet a port is not taken down.
    bridge: Option<Lock>,
}

impl Context {
    /// Nothing is done yet.
    pub(crate) fn new(node: Node, sandbox: Sandbox, agent: Agent) -> Self {
        Self { node, sandbox, agent, journal: Journal::default(), bridge: None }
    }

    /// Holds off those who would take down the bridge while it is idle, until this is [released](Self::release_bridge), done or undone.
    ///
    /// # Errors
    /// [`NodeError::Lock`].
    pub(crate) fn hold_bridge(&mut self, name: &str) -> Result<(), NodeError> {
        if self.bridge.is_none() {
            self.bridge = Some(lock_bridge(self.agent.socket(), name, Sharing::Shared)?);
        }
        Ok(())
    }

    /// Holds them off no more.
    pub(crate) fn release_bridge(&mut self) {
        self.bridge = None;
    }

    /// Has the agent put its programs behind a port, and set the host's end up.
    ///
    /// # Errors
    /// What the agent says.
    pub(crate) fn attach(&mut self, port: BridgePort) -> Result<Reply, Error> {
        self.journal.push(Step::Attached { key: port.key.clone(), host: port.host.index });
        let attached = self.agent.ask(Request::Attach { port, set_up: true });
        if let Err(ClientError::Refused(AgentError { kind: ErrorKind::Exists, .. })) = attached {
            // What is attached under this key is not this ADD's to detach.
            self.journal.withdraw_attached();
        }
        Ok(attached?)
    }

    /// Has the agent give an attachment the addresses of `port`.
    ///
    /// # Errors
    /// What the agent says; [`AttachError::OldAgent`] where it cannot do that.
    pub(crate) fn address(&mut self, port: BridgePort) -> Result<Reply, Error> {
        match self.agent.ask(Request::Address { port }) {
            Err(ClientError::Refused(refusal)) if is_unknown_verb(&refusal) => {
                Err(AttachError::OldAgent.into())
            }
            addressed => Ok(addressed?),
        }
    }

    /// Takes everything back; answers what could not be.
    pub(crate) fn undo(&mut self, ipam: &Ipam<'_>) -> Vec<Error> {
        let Self { node, sandbox, agent, journal, bridge } = self;
        journal.undo(Places { node, sandbox, agent }, ipam, bridge.take())
    }
}

/// Whether an agent of an earlier build does not know what it is asked for.
fn is_unknown_verb(refusal: &AgentError) -> bool {
    refusal.kind == ErrorKind::Malformed && refusal.message.contains("unknown variant")
}

//! What an ADD works with: both namespaces, the agent, and a note of all that was done.

use shunt_agent_api::{AgentError, AttachmentKey, BridgePort, ClientError, ErrorKind, Reply, Request};
use shunt_leases::{Lock, Sharing};
use shunt_netlink::link::{Link, set_link_down};

use crate::agent::Agent;
use crate::error::Error;
use crate::ipam::Ipam;
use crate::node::{Node, NodeError, Sandbox, lock_bridge};
use crate::undo::{Journal, Places};

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
        self.journal.push_attached(&port.key, port.host.index);
        let attached = self.agent.ask(Request::Attach { port, set_up: true });
        if let Err(ClientError::Refused(AgentError { kind: ErrorKind::Exists, .. })) = attached {
            // What is attached under this key is not this ADD's to detach.
            self.journal.withdraw_attached();
        }
        Ok(attached?)
    }

    /// Takes an interface that was attached without addresses out of service; it is attached once more with them.
    ///
    /// # Errors
    /// What the kernel or the agent says.
    pub(crate) fn detach(&mut self, key: &AttachmentKey, host: &Link) -> Result<(), Error> {
        self.node.netlink.run(set_link_down(host.index))?;
        self.agent.ask(Request::Detach { key: key.clone(), link: None })?;
        Ok(())
    }

    /// Takes everything back; answers what could not be.
    pub(crate) fn undo(&mut self, ipam: &Ipam<'_>) -> Vec<Error> {
        let Self { node, sandbox, agent, journal, bridge } = self;
        journal.undo(Places { node, sandbox, agent }, ipam, bridge.take())
    }
}

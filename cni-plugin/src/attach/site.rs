//! What an ADD works with: both namespaces, the agent, and a note of all that was done.

use std::fs::File;
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::time::Duration;

use nix::fcntl::Flock;
use shunt_agent_api::{
    AgentError, AttachmentKey, BridgePort, Client, ClientError, ErrorKind, FarEnd, Place, Request, Unread,
};
use shunt_slice::take_short;

use super::port::HEARING;
use super::{AttachError, Journal, Node, Sandbox};
use crate::agent::{Line, Presence};
use crate::error::Error;
use crate::ipam::Ipam;
use crate::netlink::{Link, LinkWatch, requests};

/// How long the kernel is listened to and not the agent: an attach takes a tenth of that on an idle node, and the agent's answer, which comes before,
/// would wake this process for nothing, and once more when the kernel has its word. A refusal is heard that much later.
const AT_FIRST: Duration = Duration::from_millis(4);

/// Where an attachment is made, and what was done there.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) node: Node,
    pub(crate) sandbox: Sandbox,
    pub(crate) line: Line,
    pub(crate) journal: Journal,
    presence: Arc<Presence>,
    /// While it is held, a bridge on which the interface is not yet a port is not taken down.
    bridges: Option<Flock<File>>,
    /// Whether the interface was never in service, so that nobody has a hand in it.
    is_new: bool,
}

/// What came of an attach.
#[derive(Debug)]
pub(crate) struct Taken<T> {
    /// The agent's answer, which is no refusal.
    pub(crate) reply: Unread,
    /// What was done meanwhile.
    pub(crate) done: T,
    /// Whether the agent has set the host's end up and packets get from one end to the other, by the kernel's word.
    pub(crate) works: bool,
}

/// The container's end, which the agent is about to give its carrier.
struct Arrival {
    watch: LinkWatch,
    index: u32,
}

impl Arrival {
    fn is_heard_within(&self, patience: Duration) -> bool {
        self.watch.until_operational(self.index, patience, None).is_some()
    }

    /// Whether that comes before the agent ends the connection, with which it has done what it could.
    fn is_heard_before(&self, agent: &Client) -> bool {
        self.watch.until_operational(self.index, HEARING, Some(agent.as_fd())).is_some()
    }
}

impl Site {
    /// Nothing is done yet, and nobody is connected to the agent.
    pub(crate) fn new(node: Node, sandbox: Sandbox, presence: Arc<Presence>) -> Self {
        let (line, journal) = (Line::default(), Journal::default());
        Self { node, sandbox, line, journal, presence, bridges: None, is_new: true }
    }

    /// Whether there is an agent.
    pub(crate) fn presence(&self) -> Arc<Presence> {
        Arc::clone(&self.presence)
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
    /// answer.
    ///
    /// # Errors
    /// What the agent or `meanwhile` says, the agent's first.
    pub(crate) fn attach<T>(
        &mut self,
        port: BridgePort,
        place: Place,
        far_end: Option<FarEnd>,
        meanwhile: impl FnOnce(&mut Node, &mut Sandbox) -> Result<T, Error>,
    ) -> Result<Taken<T>, Error> {
        // Nothing else is asked of it, unless something goes wrong.
        let (mut agent, announced) = self.line.hang_up()?;
        self.journal.push_attached(&port.key);
        let (is_new, set_up) = (self.is_new, far_end);
        agent.send_last(if announced.as_ref() == Some(&port) {
            Request::AttachAnnounced { place, is_new, set_up }
        } else {
            Request::Attach { port: port.at(place), is_new, set_up }
        })?;
        let done = meanwhile(&mut self.node, &mut self.sandbox);
        let arrival = far_end.filter(|_| done.is_ok()).and_then(|far_end| self.expect(&agent, far_end));
        let heard = arrival.as_ref().is_some_and(|arrival| arrival.is_heard_within(AT_FIRST));
        let reply = agent.receive_attached().inspect_err(|error| {
            if matches!(error, ClientError::Refused(AgentError { kind: ErrorKind::Exists, .. })) {
                // What is attached under this key is not this ADD's to detach.
                self.journal.withdraw_attached();
            }
        })?;
        let works = heard || arrival.is_some_and(|arrival| arrival.is_heard_before(&agent));
        Ok(Taken { reply, done: done?, works })
    }

    /// Listens for the container's end to work, unless the agent may have set it up already.
    fn expect(&self, agent: &Client, far_end: FarEnd) -> Option<Arrival> {
        let watch = self.sandbox.watch(&self.node).ok()?;
        // The kernel's worker that will have the word goes on with what IPv6 has to do for the container (`addrconf_dad_work`), on this
        // processor as a rule, and who wakes up would wait for that.
        take_short();
        (!agent.has_answered()).then_some(Arrival { watch, index: far_end.index })
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
        self.journal.undo(&mut self.node, &mut self.line, ipam, self.bridges)
    }
}

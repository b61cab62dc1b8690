//! The agent without its socket: it recovers what an earlier one left, follows the kernel, looks after its node each second, and answers.
//!
//! One thread owns the agent and handles one thing at a time. The thread must stay in the network namespace in which the agent was opened.

mod clock;
#[cfg(feature = "kubernetes")]
mod consult;
mod core;
mod reader;
mod recover;
mod retire;
mod schedule;
mod unavailable;

use std::sync::Arc;

use shunt_agent_api::{AgentError, Reply, Request, TraceParent, WatchReport, WatchRequest};
use shunt_netlink::LinkEvent;
use tokio::sync::mpsc;

#[cfg(feature = "kubernetes")]
pub(crate) use self::consult::{Consult, Consultation};
pub(crate) use self::core::{Core, CoreError};
pub use self::recover::PreviousState;
use crate::config::Config;
use crate::datapath::DatapathError;
use crate::kernel::KernelError;
use crate::requests;
use crate::requests::query::mappings::HostPort;
use crate::requests::query::owners::Owners;
use crate::requests::query::traffic::TrafficReport;
use crate::resources::Node;
use crate::resources::connection::{Tallies, handover};
use crate::resources::events::Events;
use crate::resources::host_port::connected_peers;
use crate::state::StoreError;

/// Why the agent cannot start.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The state directory.
    #[error(transparent)]
    State(#[from] StoreError),
    /// The kernel.
    #[error(transparent)]
    Kernel(#[from] KernelError),
}

impl From<DatapathError> for OpenError {
    fn from(error: DatapathError) -> Self {
        Self::Kernel(error.into())
    }
}

/// The agent of a node.
pub struct Agent {
    node: Node,
}

impl Agent {
    /// Locks the state directory, loads the programs and recovers the state of an earlier agent.
    ///
    /// # Errors
    /// [`OpenError`]; attached programs keep serving.
    pub fn open(config: &Config) -> Result<Self, OpenError> {
        Self::succeed(config, PreviousState::take(&config.state_dir)?)
    }

    /// The same, with the result of [`PreviousState::take`].
    ///
    /// # Errors
    /// [`OpenError`]; attached programs keep serving.
    pub fn succeed(config: &Config, previous_state: PreviousState) -> Result<Self, OpenError> {
        let PreviousState { store, loaded, leases } = previous_state;
        let mut node = Node::open(config, store)?;
        node.read_speeds();
        node.read_departed();
        node.recover(loaded, leases)?;
        node.told = node.ledger.pools();
        Ok(Self { node })
    }

    /// Answers a request.
    pub fn answer(&mut self, request: Request) -> Reply {
        requests::answer(&mut self.node, request)
    }

    /// The same for a trace: log lines and events of what is done have its id.
    pub fn answer_of(&mut self, request: Request, trace: Option<&TraceParent>) -> Reply {
        self.node.events.set_trace(trace.map(|trace| trace.trace_id().to_owned()));
        let span = shunt_trace::of_call(trace, request.verb());
        let reply = span.in_scope(|| self.answer(request));
        if let (Some(_), Reply::Error(refusal)) = (trace, &reply) {
            span.in_scope(|| tracing::info!(kind = ?refusal.kind, "a request was refused: {refusal}"));
            shunt_trace::has_failed(&span, &refusal.message);
        }
        self.node.events.set_trace(None);
        reply
    }

    /// Applies netlink's events.
    pub fn follow(&mut self, events: &[LinkEvent]) {
        self.node.follow(events);
    }

    /// Checks and repairs, once a second.
    pub fn tick(&mut self) {
        self.node.tick();
    }

    /// The event channel.
    pub(crate) fn events(&self) -> Events {
        self.node.events.clone()
    }

    /// For readers of the connections.
    pub(crate) fn tallies(&self) -> Arc<Tallies> {
        Arc::clone(&self.node.tallies)
    }

    /// The host ports, without their figures.
    pub(crate) fn host_ports(&self) -> Vec<HostPort> {
        self.node.host_ports()
    }

    /// The pods, by their containers' addresses.
    pub(crate) fn pod_owners(&self) -> Owners {
        self.node.pod_owners()
    }

    /// What the containers have carried.
    ///
    /// # Errors
    /// The counters cannot be read.
    pub(crate) fn traffic(&self) -> Result<TrafficReport, AgentError> {
        Ok(self.node.traffic()?)
    }

    /// Has packets told: [`Node::watch`].
    ///
    /// # Errors
    /// Why not.
    pub(crate) fn watch(&mut self, request: WatchRequest) -> Result<mpsc::Receiver<WatchReport>, AgentError> {
        Ok(self.node.watch(request)?)
    }

    /// Forgets watchers that have left.
    pub(crate) fn look_after_watchers(&mut self) {
        self.node.look_after_watchers();
    }

    /// Writes what is written now and then only, before the process ends.
    pub(crate) fn leave(&mut self) {
        self.node.end_watching();
        self.node.write_departed();
        handover::leave(&self.node.datapath);
        connected_peers::leave(&self.node.datapath);
    }

    /// The number of attachments.
    pub fn attachments(&self) -> usize {
        self.node.registry.len()
    }

    /// Sets somebody's remark in the status.
    #[cfg(feature = "kubernetes")]
    pub(crate) fn set_remark(&mut self, whose: &'static str, remark: Option<String>) {
        match remark {
            Some(remark) => drop(self.node.remarks.insert(whose, remark)),
            None => drop(self.node.remarks.remove(whose)),
        }
    }

    /// The node, for what Kubernetes asks.
    #[cfg(feature = "kubernetes")]
    pub(crate) fn node(&mut self) -> &mut Node {
        &mut self.node
    }
}

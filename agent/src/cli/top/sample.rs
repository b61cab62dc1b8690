//! One look at the node: what the agent answers within one deadline.

use std::path::Path;
use std::time::{Duration, Instant};

use shunt_agent_api::{
    AgentStatus, CapacityReport, Client, ClientError, DropReport, PortReport, Reply, Request,
};

/// How long all of the answers may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// What the agent says at one moment.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    /// When the ports' counters were read.
    pub(super) at: Instant,
    pub(super) status: AgentStatus,
    pub(super) ports: Vec<PortReport>,
    pub(super) drops: Vec<DropReport>,
    pub(super) capacity: CapacityReport,
}

/// Why there is none.
#[derive(Debug, thiserror::Error)]
pub(super) enum SampleError {
    #[error(transparent)]
    Client(#[from] ClientError),
    /// An agent of another kind.
    #[error("the shunt agent answers another question than it was asked")]
    Unrelated,
}

impl Sample {
    /// Asks the agent, by a connection of its own: the agent may be another one than before.
    ///
    /// # Errors
    /// The agent does not answer in time, or refuses.
    pub(super) fn take(socket: &Path) -> Result<Self, SampleError> {
        let deadline = Instant::now() + PATIENCE;
        let mut client = Client::connect_by(socket, deadline)?;
        let mut ask = |request| client.ask_by(request, deadline);
        let Reply::Status(status) = ask(Request::Status)? else { return Err(SampleError::Unrelated) };
        let Reply::Capacity(capacity) = ask(Request::Capacity)? else { return Err(SampleError::Unrelated) };
        let Reply::Drops(drops) = ask(Request::Drops)? else { return Err(SampleError::Unrelated) };
        let asked = Instant::now();
        let Reply::Ports(ports) = ask(Request::Ports)? else { return Err(SampleError::Unrelated) };
        Ok(Self { at: asked + asked.elapsed() / 2, status, ports, drops, capacity })
    }
}

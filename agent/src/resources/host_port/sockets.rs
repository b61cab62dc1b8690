//! Attaches programs to the sockets of the node's own processes while a host port exists, so that they reach it.

use super::state::State;
use crate::datapath::attach::cgroup;
use crate::resources::Gravity;
use crate::resources::reconcile::{Cause, Resource};
use crate::resources::{Finding, Node, Refusal};

/// The programs, while a host port exists. One that another user has detached is attached again.
pub(crate) struct SocketPrograms;

impl Resource for SocketPrograms {
    fn name(&self) -> String {
        "programs on sockets".to_owned()
    }

    /// The host port still works from outside.
    fn gravity(&self) -> Gravity {
        Gravity::Warning
    }

    fn observe(&self, node: &mut Node) -> Result<Vec<Finding>, Refusal> {
        let is_lost = match node.sockets.state {
            State::Unknown | State::Detached => false,
            State::Attached { .. } => node.datapath.has_lost_sockets(),
            State::Failed => true,
        };
        Ok(if is_lost { vec![Finding::Sockets] } else { Vec::new() })
    }

    fn apply(&self, node: &mut Node, _: Cause<'_>) -> Result<(), Refusal> {
        node.attach_sockets()
    }
}

impl Node {
    /// Attaches the programs while a host port exists, and detaches them otherwise. A failure is tried again at each tick.
    pub(crate) fn watch_sockets(&mut self) {
        match (self.is_mapped(), &self.sockets.state) {
            (true, State::Attached { .. } | State::Failed) | (false, State::Detached) => {}
            (true, State::Unknown | State::Detached) => {
                self.begin(&SocketPrograms);
            }
            (false, State::Unknown | State::Attached { .. } | State::Failed) => {
                self.detach_sockets();
                self.sockets.state = State::Detached;
                self.resolve(&SocketPrograms);
            }
        }
    }

    fn attach_sockets(&mut self) -> Result<(), Refusal> {
        let attached = cgroup::find_cgroup(self.sockets.wanted.as_deref())
            .map_err(|source| source.to_string())
            .and_then(|cgroup| match self.datapath.attach_sockets(&cgroup) {
                Ok(programs) => Ok((cgroup, programs)),
                Err(error) => Err(error.to_string()),
            });
        match attached {
            Ok((cgroup, programs)) => {
                tracing::info!(cgroup = %cgroup.display(), "the node's own processes reach host ports");
                self.sockets.state = State::Attached { cgroup, programs };
                Ok(())
            }
            Err(error) => {
                self.detach_sockets();
                self.sockets.state = State::Failed;
                Err(Refusal::Sockets(error))
            }
        }
    }

    fn detach_sockets(&mut self) {
        for error in self.datapath.detach_sockets() {
            tracing::warn!(%error, "cannot detach a program from the cgroup");
        }
    }
}

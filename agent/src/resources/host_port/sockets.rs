//! Attaches programs to the sockets of the node's own processes while a host port exists, so that they reach it.

use super::state::State;

use crate::datapath::attach::cgroup::{self};
use crate::resources::Node;

impl Node {
    /// Attaches the programs while a host port exists, and detaches them otherwise. A failure is reported
    /// once in the status: the host port still works from outside.
    pub(crate) fn watch_sockets(&mut self) {
        match (self.is_mapped(), &self.sockets.state) {
            (true, State::Attached { .. } | State::Failed) | (false, State::Detached) => {}
            (true, State::Unknown | State::Detached) => self.attach_sockets(),
            (false, State::Unknown | State::Attached { .. } | State::Failed) => {
                for error in self.datapath.detach_sockets() {
                    tracing::warn!(%error, "cannot detach a program from the cgroup");
                }
                self.sockets.state = State::Detached;
            }
        }
    }

    /// Reattaches programs that somebody else has detached.
    pub(crate) fn repair_sockets(&mut self) {
        if matches!(self.sockets.state, State::Attached { .. }) && self.datapath.has_lost_sockets() {
            tracing::warn!("programs were detached from the cgroup");
            self.attach_sockets();
        }
    }

    fn attach_sockets(&mut self) {
        let attached = cgroup::find_cgroup(self.sockets.wanted.as_deref())
            .map_err(|source| source.to_string())
            .and_then(|cgroup| match self.datapath.attach_sockets(&cgroup) {
                Ok(programs) => Ok((cgroup, programs)),
                Err(error) => Err(error.to_string()),
            });
        self.sockets.state = match attached {
            Ok((cgroup, programs)) => {
                tracing::info!(cgroup = %cgroup.display(), "the node's own processes reach host ports");
                State::Attached { cgroup, programs }
            }
            Err(error) => {
                for error in self.datapath.detach_sockets() {
                    tracing::warn!(%error, "cannot detach a program from the cgroup");
                }
                self.warn(format!("host ports are unreachable from the node itself: {error}"));
                State::Failed
            }
        };
    }
}

//! The node's own processes: programs on their sockets lead them to host ports. They are there only while a host port
//! leads anywhere.

use std::path::PathBuf;

use shunt_agent_api::{ProgramMode, ProgramReport};

use super::Agent;
use crate::bpf::socket::{self, SocketProgram};

/// What is known of the programs on sockets.
#[derive(Debug, Default)]
pub(super) struct Sockets {
    /// The cgroup that was configured.
    wanted: Option<PathBuf>,
    state: State,
}

#[derive(Debug, Default)]
enum State {
    /// An earlier agent may have left something.
    #[default]
    Unknown,
    /// Nothing of ours is attached.
    Detached,
    /// All of it is, to this cgroup.
    Attached { cgroup: PathBuf, programs: Vec<(SocketProgram, u32)> },
    /// It could not be attached, and that has been said.
    Failed,
}

impl Sockets {
    pub(super) fn new(wanted: Option<PathBuf>) -> Self {
        Self { wanted, state: State::Unknown }
    }

    /// The attached ones.
    pub(super) fn reports(&self) -> Vec<ProgramReport> {
        let State::Attached { cgroup, programs } = &self.state else { return Vec::new() };
        let report = |(program, id): &(SocketProgram, u32)| ProgramReport {
            name: program.name().to_owned(),
            ifname: cgroup.display().to_string(),
            mode: ProgramMode::Cgroup,
            id: *id,
        };
        programs.iter().map(report).collect()
    }
}

impl Agent {
    /// Attaches the programs if a host port leads anywhere, and takes them away if none does. What cannot be done is said
    /// in the status, once: a host port that the node itself does not reach is better than none.
    pub(super) fn watch_sockets(&mut self) {
        match (self.is_mapped(), &self.sockets.state) {
            (true, State::Attached { .. } | State::Failed) | (false, State::Detached) => {}
            (true, State::Unknown | State::Detached) => self.attach_sockets(),
            (false, State::Unknown | State::Attached { .. } | State::Failed) => {
                for error in self.kernel.detach_sockets() {
                    tracing::warn!(%error, "cannot detach a program from the cgroup");
                }
                self.sockets.state = State::Detached;
            }
        }
    }

    /// Puts back what somebody has taken away.
    pub(super) fn repair_sockets(&mut self) {
        if matches!(self.sockets.state, State::Attached { .. }) && self.kernel.has_lost_sockets() {
            tracing::warn!("programs were detached from the cgroup");
            self.attach_sockets();
        }
    }

    fn attach_sockets(&mut self) {
        let attached = socket::find_cgroup(self.sockets.wanted.as_deref())
            .map_err(|source| source.to_string())
            .and_then(|cgroup| match self.kernel.attach_sockets(&cgroup) {
                Ok(programs) => Ok((cgroup, programs)),
                Err(error) => Err(error.to_string()),
            });
        self.sockets.state = match attached {
            Ok((cgroup, programs)) => {
                tracing::info!(cgroup = %cgroup.display(), "the node's own processes reach host ports");
                State::Attached { cgroup, programs }
            }
            Err(error) => {
                for error in self.kernel.detach_sockets() {
                    tracing::warn!(%error, "cannot detach a program from the cgroup");
                }
                self.warn(format!("host ports are unreachable from the node itself: {error}"));
                State::Failed
            }
        };
    }
}

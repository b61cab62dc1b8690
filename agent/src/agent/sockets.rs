//! Attaches programs to the sockets of the node's own processes while a host port exists, so that they reach it.

use std::path::PathBuf;

use shunt_agent_api::{ProgramMode, ProgramReport};

use super::Agent;
use crate::bpf::socket::{self, SocketProgram};

/// State of the programs on sockets.
#[derive(Debug, Default)]
pub(super) struct Sockets {
    /// The cgroup that was configured.
    wanted: Option<PathBuf>,
    state: State,
}

#[derive(Debug, Default)]
enum State {
    /// Unknown: an earlier agent may have attached programs.
    #[default]
    Unknown,
    /// No program is attached.
    Detached,
    /// All programs are attached to this cgroup.
    Attached { cgroup: PathBuf, programs: Vec<(SocketProgram, u32)> },
    /// Attaching failed and was reported.
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
    /// Attaches the programs while a host port exists, and detaches them otherwise. A failure is reported
    /// once in the status: the host port still works from outside.
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

    /// Reattaches programs that somebody else has detached.
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

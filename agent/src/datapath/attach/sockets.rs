//! Attaches and detaches the programs on the node's sockets.

use std::path::Path;

use super::cgroup::{self, SocketError, SocketProgram};
use crate::datapath::{Datapath, DatapathError};

impl Datapath {
    /// Attaches all programs on sockets to the cgroup, in place of an earlier agent's. Returns their names and ids.
    ///
    /// # Errors
    /// The kernel refuses; some may be attached.
    pub fn attach_sockets(&mut self, cgroup: &Path) -> Result<Vec<(SocketProgram, u32)>, DatapathError> {
        let mut attached = Vec::new();
        for program in SocketProgram::ALL {
            let pin = self.pins.socket(program);
            let (loaded, id) = self.programs.socket(program)?;
            cgroup::attach(loaded, cgroup, &pin).map_err(in_socket(program))?;
            attached.push((program, id));
        }
        Ok(attached)
    }

    /// Detaches them. Continues after errors.
    pub fn detach_sockets(&mut self) -> Vec<DatapathError> {
        let detached = SocketProgram::ALL
            .into_iter()
            .rev()
            .map(|program| cgroup::detach(&self.pins.socket(program)).map_err(in_socket(program)));
        detached.filter_map(Result::err).collect()
    }

    /// Whether a program on sockets has lost its pin and so its link.
    pub fn has_lost_sockets(&self) -> bool {
        SocketProgram::ALL.into_iter().any(|program| !self.pins.socket(program).exists())
    }
}

fn in_socket(program: SocketProgram) -> impl FnOnce(SocketError) -> DatapathError {
    move |source| DatapathError::Socket { program: program.name(), source }
}

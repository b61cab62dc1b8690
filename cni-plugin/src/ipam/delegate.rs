//! An IPAM plugin as a program of its own (CNI specification, section 4): same environment, same configuration.

use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::Instant;

use super::error::IpamError;
use crate::call::{Call, Failure, Verb};
use crate::config::{Config, Personality, canonicalise};
use crate::program::{self, is_program};
use crate::result::AddResult;

/// An IPAM plugin that was found in CNI_PATH.
#[derive(Debug)]
pub(crate) struct Delegate<'a> {
    name: &'a str,
    program: PathBuf,
}

impl<'a> Delegate<'a> {
    /// Looks the plugin up. An interface plugin is none: it would run its own IPAM, which is itself again, without end.
    pub(crate) fn find(name: &'a str, path: &[PathBuf]) -> Result<Self, IpamError> {
        if name.contains('/') || name == "." || name == ".." {
            return Err(IpamError::Name(name.to_owned()));
        }
        if Personality::of_type(name).is_some_and(|role| role != Personality::Ipam) {
            return Err(IpamError::Interface(name.to_owned()));
        }
        let found = path.iter().map(|folder| folder.join(name)).find(|program| is_program(program));
        let program = found.ok_or_else(|| IpamError::NotFound {
            name: name.to_owned(),
            path: path.iter().map(|folder| folder.display().to_string()).collect::<Vec<_>>().join(":"),
        })?;
        Ok(Self { name, program })
    }

    /// Runs the plugin's ADD and reads its result.
    pub(crate) fn add(&self, config: &Config, call: &Call) -> Result<AddResult, IpamError> {
        let output = self.run(Verb::Add, config, call)?;
        let unreadable =
            || IpamError::Unreadable { name: self.name.to_owned(), status: "success".to_owned() };
        let mut value = serde_json::from_slice(&output).map_err(|_| unreadable())?;
        canonicalise(&mut value);
        AddResult::from_json(&value, config.version)
            .map_err(|source| IpamError::Result { name: self.name.to_owned(), source })
    }

    /// Runs another verb, whose output means nothing.
    pub(crate) fn tell(&self, verb: Verb, config: &Config, call: &Call) -> Result<(), IpamError> {
        self.run(verb, config, call).map(drop)
    }

    fn run(&self, verb: Verb, config: &Config, call: &Call) -> Result<Vec<u8>, IpamError> {
        let mut command = call.command(&self.program, verb);
        if !call.ifname.is_empty() {
            // A VLAN's interface has a name of its own in a chain.
            command.env("CNI_IFNAME", &call.ifname);
        }
        debug_assert!(!call.path.is_empty(), "every verb that delegates requires CNI_PATH");
        let timeout = config.network.ipam_timeout.or(call.setting.program_limit);
        let deadline = timeout.map(|timeout| Instant::now() + timeout);
        let name = || self.name.to_owned();
        let ended = program::run(&mut command, &config.raw, deadline).map_err(|source| match timeout {
            Some(timeout) if source.kind() == ErrorKind::TimedOut => {
                IpamError::TimedOut { name: name(), timeout }
            }
            _ => IpamError::Run { name: name(), source },
        })?;
        if ended.status.success() {
            return Ok(ended.output);
        }
        Err(match serde_json::from_slice::<Failure>(&ended.output) {
            Ok(failure) => IpamError::Delegate { name: name(), failure },
            Err(_) => IpamError::Unreadable { name: name(), status: ended.status.to_string() },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_name_of_a_program_is_said_to_be_so_of_the_key() {
        for name in ["../sh", ".", "a/b"] {
            let refused = Delegate::find(name, &[]).unwrap_err().to_string();
            assert!(
                refused.starts_with(&format!("`ipam.type`: `{name}` is no name of a program")),
                "{refused}"
            );
        }
    }
}

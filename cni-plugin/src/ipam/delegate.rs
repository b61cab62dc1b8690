//! An IPAM plugin as a program of its own (CNI specification, section 4): same environment, same configuration.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::error::IpamError;
use crate::call::{Call, Failure, NameError, Verb};
use crate::config::{Config, canonicalise};
use crate::result::AddResult;

/// An IPAM plugin that was found in CNI_PATH.
#[derive(Debug)]
pub(crate) struct Delegate<'a> {
    name: &'a str,
    program: PathBuf,
}

impl<'a> Delegate<'a> {
    /// Looks the plugin up.
    pub(crate) fn find(name: &'a str, path: &[PathBuf]) -> Result<Self, IpamError> {
        if name.contains('/') || name == "." || name == ".." {
            let why = "is not a file's name";
            return Err(IpamError::Name(NameError::Interface { name: name.to_owned(), why }));
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
        let failed = |source| IpamError::Run { name: self.name.to_owned(), source };
        let mut command = Command::new(&self.program);
        command.env("CNI_COMMAND", verb.name()).stdin(Stdio::piped()).stdout(Stdio::piped());
        if !call.ifname.is_empty() {
            // A VLAN's interface has a name of its own in a chain.
            command.env("CNI_IFNAME", &call.ifname);
        }
        debug_assert!(!call.path.is_empty(), "every verb that delegates requires CNI_PATH");
        let mut child = command.spawn().map_err(failed)?;
        if let Some(mut stdin) = child.stdin.take() {
            // A plugin that does not read its configuration may have ended already; its exit status says more.
            let _ = stdin.write_all(&config.raw);
        }
        let output = child.wait_with_output().map_err(failed)?;
        if output.status.success() {
            return Ok(output.stdout);
        }
        Err(match serde_json::from_slice::<Failure>(&output.stdout) {
            Ok(failure) => IpamError::Delegate { name: self.name.to_owned(), failure },
            Err(_) => IpamError::Unreadable { name: self.name.to_owned(), status: output.status.to_string() },
        })
    }
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

//! The environment of a call, checked.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use shunt_agent_api::Pod;

use super::arguments::{Arguments, ArgumentsError};
use super::caller;
use super::names::{NameError, check_identifier, check_interface, check_length};
use super::variables::Variables;
use super::verb::{UnknownVerb, Verb};
use crate::setting::Setting;

/// What the runtime said in the environment. Which fields are filled depends on the verb ([`Verb::required`]).
#[derive(Clone, Debug)]
pub struct Call {
    /// `CNI_COMMAND`.
    pub verb: Verb,
    /// `CNI_CONTAINERID`.
    pub container: String,
    /// `CNI_NETNS`, a path; at DEL it may be empty.
    pub netns: String,
    /// `CNI_IFNAME`.
    pub ifname: String,
    /// `CNI_ARGS`.
    pub arguments: Arguments,
    /// `CNI_PATH`, split: where other plugins are.
    pub path: Vec<PathBuf>,
    /// `CNI_NETNS_OVERRIDE`: the container's namespace may be the node's own.
    pub netns_override: bool,
    /// All of it, for other plugins.
    pub(crate) variables: Variables,
    /// What the process has decided.
    pub(crate) setting: Setting,
}

/// The environment is not right.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// No `CNI_COMMAND`: a person ran the plugin.
    #[error("CNI_COMMAND is not set")]
    NoCommand,
    /// See [`UnknownVerb`].
    #[error(transparent)]
    Verb(#[from] UnknownVerb),
    /// Variables that the verb needs.
    #[error("required env variables [{}] missing", .0.join(","))]
    Missing(Vec<&'static str>),
    /// See [`NameError`].
    #[error(transparent)]
    Name(#[from] NameError),
    /// See [`ArgumentsError`].
    #[error(transparent)]
    Arguments(#[from] ArgumentsError),
    /// A variable's value is not UTF-8.
    #[error("{0} is not UTF-8")]
    NotText(&'static str),
}

impl Call {
    /// Reads the environment through `get`.
    ///
    /// # Errors
    /// Every kind of [`CallError`].
    pub fn read(get: impl Fn(&str) -> Option<OsString>) -> Result<Self, CallError> {
        let text = |name: &'static str| match get(name) {
            None => Ok(String::new()),
            Some(value) => value.into_string().map_err(|_| CallError::NotText(name)),
        };
        let command = text("CNI_COMMAND")?;
        if command.is_empty() {
            return Err(CallError::NoCommand);
        }
        let verb: Verb = command.parse()?;
        let unset = |name: &str| get(name).is_none_or(|value| value.is_empty());
        let missing: Vec<&str> = verb.required().iter().copied().filter(|name| unset(name)).collect();
        let call = Self {
            verb,
            container: text("CNI_CONTAINERID")?,
            netns: text("CNI_NETNS")?,
            ifname: text("CNI_IFNAME")?,
            arguments: Arguments::default(),
            path: get("CNI_PATH").map(|path| std::env::split_paths(&path).collect()).unwrap_or_default(),
            netns_override: matches!(text("CNI_NETNS_OVERRIDE")?.to_ascii_lowercase().as_str(), "1" | "true"),
            variables: Variables::read(&get),
            setting: Setting::default(),
        };
        if verb.required().contains(&"CNI_CONTAINERID") {
            if !call.container.is_empty() {
                check_identifier("container id", &call.container)?;
            }
            if verb == Verb::Add {
                check_length("container id", &call.container)?;
            }
            if !call.ifname.is_empty() {
                check_interface(&call.ifname)?;
            }
        }
        if !missing.is_empty() {
            return Err(CallError::Missing(missing));
        }
        // A DEL must not fail for words that an ADD has refused already.
        let arguments = match verb {
            Verb::Add | Verb::Check | Verb::Finalize => Arguments::parse(&text("CNI_ARGS")?)?,
            _ => Arguments::default(),
        };
        Ok(Self { arguments, ..call })
    }

    /// Another plugin, in this call's environment but for the verb.
    pub(crate) fn command(&self, program: &Path, verb: Verb) -> Command {
        self.variables.command(program, verb.name())
    }

    /// The pod, as far as the runtime says; where it does not say enough, who the runtime is.
    pub(crate) fn pod(&self) -> Pod {
        let pod = self.arguments.pod.clone();
        let runtime = if pod.uid.is_empty() { self.runtime() } else { String::new() };
        Pod { runtime, ..pod }
    }

    /// Who the runtime is; empty where nobody knows.
    pub(crate) fn runtime(&self) -> String {
        self.setting.runtime.clone().unwrap_or_else(|| caller::name(self.setting.caller))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_that_no_attachment_can_have_is_refused_at_add_and_no_fault_of_del_s() {
        let read = |verb: &str, length: usize| {
            let id = "c".repeat(length);
            Call::read(|name| {
                let value = match name {
                    "CNI_COMMAND" => verb,
                    "CNI_CONTAINERID" => &id,
                    "CNI_IFNAME" => "eth0",
                    "CNI_NETNS" => "/run/netns/x",
                    "CNI_PATH" => "/opt/cni/bin",
                    _ => return None,
                };
                Some(value.into())
            })
        };
        read("ADD", 200).unwrap();
        let refused = read("ADD", 201).unwrap_err();
        assert!(matches!(refused, CallError::Name(NameError::Length { .. })), "{refused}");
        read("DEL", 201).unwrap();
    }
}

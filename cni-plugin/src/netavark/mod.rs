//! netavark's plugin interface, which podman 5 has in the place of CNI: `create`, `setup`, `teardown` and `info`, on one network at a time.
//!
//! In: a verb as the first argument, for `setup` and `teardown` the container's namespace as the second, JSON on standard input. The request is
//! put into a CNI configuration and given to the procedure of ADD or DEL; addresses are netavark's, and come as an earlier plugin's result would.
//! Out: JSON on standard output, for a failure `{"error": …}` and exit code 1. (netavark 2.1, `plugin-API.md`.)

mod addresses;
mod create;
mod error;
mod network;
mod options;
mod ports;
mod request;
mod status;

use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::path::Path;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use self::error::NetavarkError;
use self::request::Exec;
use crate::call::{Call, Verb as CniVerb};
use crate::config::Config;
use crate::{add, deinit, del};

/// The version of the interface.
const API_VERSION: &str = "1.0.0";

/// What netavark, or podman, asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    /// Complete a network's configuration.
    Create,
    /// Attach a container.
    Setup,
    /// Detach it.
    Teardown,
    /// Say which version this is.
    Info,
}

impl Verb {
    /// None for a word that is no verb of netavark's: a CNI runtime passes no arguments.
    fn of(word: &OsStr) -> Option<Self> {
        Some(match word.to_str()? {
            "create" => Self::Create,
            "setup" => Self::Setup,
            "teardown" => Self::Teardown,
            "info" => Self::Info,
            _ => return None,
        })
    }
}

/// Does what `words`, the arguments after the program's name, ask; none if they are not netavark's. What is to be printed, and whether it is an
/// error.
pub(crate) fn run(
    program: &Path,
    words: &[OsString],
    environment: impl Fn(&str) -> Option<OsString>,
    stdin: impl Read,
) -> Option<Result<String, String>> {
    let verb = Verb::of(words.first()?)?;
    let context = Context { program, environment: &environment };
    Some(match context.answer(verb, words.get(1), stdin) {
        Ok(None) => Ok(String::new()),
        Ok(Some(answer)) => Ok(format!("{answer}\n")),
        Err(error) => Err(format!("{}\n", json!({ "error": error.text() }))),
    })
}

/// What a call knows beside its request.
struct Context<'a> {
    program: &'a Path,
    environment: &'a dyn Fn(&str) -> Option<OsString>,
}

impl Context<'_> {
    fn answer(
        &self,
        verb: Verb,
        netns: Option<&OsString>,
        stdin: impl Read,
    ) -> Result<Option<Value>, NetavarkError> {
        match verb {
            Verb::Info => {
                Ok(Some(json!({ "version": env!("CARGO_PKG_VERSION"), "api_version": API_VERSION })))
            }
            Verb::Create => Ok(Some(create::create(read(stdin)?)?)),
            Verb::Setup => self.set_up(netns, &read(stdin)?).map(Some),
            Verb::Teardown => self.tear_down(netns, &read(stdin)?).map(|()| None),
        }
    }

    fn set_up(&self, netns: Option<&OsString>, exec: &Exec) -> Result<Value, NetavarkError> {
        let config = request::configuration(exec)?;
        let (config, call) = self.as_cni(CniVerb::Add, netns, exec, &config)?;
        let made = add::add(&config, &call)?;
        Ok(status::of(&made, &call.ifname))
    }

    /// A container that is gone, or was never there, is torn down. The bridge goes with the network's last container, as netavark's does: when
    /// podman removes a network it asks nobody.
    fn tear_down(&self, netns: Option<&OsString>, exec: &Exec) -> Result<(), NetavarkError> {
        let config = request::minimum(exec);
        let (config, call) = self.as_cni(CniVerb::Del, netns, exec, &config)?;
        del::del(&config, &call)?;
        if exec.network.bridge().is_err() {
            return Ok(());
        }
        match deinit::deinit(&config) {
            Err(error) if error.is_of_others_use() => Ok(()),
            done => Ok(done?),
        }
    }

    /// The same call as a CNI runtime would make it. Other plugins would be looked for beside this program.
    fn as_cni(
        &self,
        verb: CniVerb,
        netns: Option<&OsString>,
        exec: &Exec,
        config: &Value,
    ) -> Result<(Config, Call), NetavarkError> {
        let netns = netns.ok_or(NetavarkError::NoNamespace)?;
        let beside = self.program.parent().filter(|path| !path.as_os_str().is_empty());
        let call = Call::read(|name| match name {
            "CNI_COMMAND" => Some(verb.name().into()),
            "CNI_CONTAINERID" => Some(exec.container_id.clone().into()),
            "CNI_NETNS" => Some(netns.clone()),
            "CNI_IFNAME" => Some(exec.network_options.interface_name.clone().into()),
            "CNI_PATH" => Some(beside.unwrap_or(Path::new("/opt/cni/bin")).into()),
            "CNI_ARGS" => Some(exec.arguments().into()),
            _ if name.starts_with("CNI_") => None,
            _ => (self.environment)(name),
        });
        let raw = config.to_string().into_bytes();
        let value = Config::parse(&raw).map_err(crate::error::Error::from)?;
        let config = Config::read(raw, value, "shunt", verb).map_err(crate::error::Error::from)?;
        Ok((config, call.map_err(crate::error::Error::from)?))
    }
}

fn read<T: DeserializeOwned>(mut stdin: impl Read) -> Result<T, NetavarkError> {
    let mut raw = Vec::new();
    stdin.read_to_end(&mut raw).map_err(crate::error::Error::Stdin)?;
    let mut deserializer = serde_json::Deserializer::from_slice(&raw);
    serde_path_to_error::deserialize(&mut deserializer).map_err(|error| NetavarkError::Json {
        key: error.path().to_string(),
        why: error.inner().to_string(),
    })
}

#[cfg(test)]
mod tests;

//! shunt, the CNI plugin: puts containers on bridges whose traffic the agent's programs carry.
//!
//! One call is one process, or one thread of a process that serves many ([`run_in`]): [`run`] reads the environment and standard input,
//! does the verb, and answers what is to be printed. Nothing is kept between calls but what is in the kernel, with the agent and in the IPAM's files.

#![forbid(unsafe_code)]

mod about;
mod add;
mod adopt;
mod agent;
pub mod call;
mod capacity;
mod chained;
mod check;
pub mod config;
mod deinit;
mod del;
mod dispatch;
mod error;
mod gc;
mod handed_over;
mod init;
mod ipam;
mod ipam_only;
mod json;
mod kept;
mod loopback;
pub mod mac;
mod metadata;
mod netavark;
mod node;
mod plan;
mod prefix;
pub mod program;
mod random;
pub mod result;
mod setting;
mod status;
mod undo;
mod validate;
pub mod via_agent;
mod vlan;

use std::ffi::OsString;
use std::io::{self, Read};
use std::path::Path;

pub use about::ABOUT;
pub use ipam::host_local;
pub use setting::Setting;

use call::{Call, CallError, Verb, Version};
use config::Config;
use error::Error;
use json::pretty;

/// The longest configuration that is read, in bytes; a GC list of tens of thousands of attachments fits.
const MAX_CONFIG: u64 = 16 << 20;

/// How the call ended.
#[derive(Debug)]
pub enum Reply {
    /// Success; the text is for standard output, and often empty.
    Done(String),
    /// Failure; the text, a JSON error, is for standard output.
    Failed(String),
    /// A person called; the text is for standard error.
    About,
}

/// Does what the arguments ask, if they are netavark's, else what the environment asks.
pub fn run_by(
    program: &Path,
    words: &[OsString],
    environment: impl Fn(&str) -> Option<OsString>,
    mut stdin: impl Read,
) -> Reply {
    match netavark::run(program, words, &environment, stdin.by_ref().take(MAX_CONFIG)) {
        None => run(program, environment, stdin),
        Some(Ok(text)) => Reply::Done(text),
        Some(Err(text)) => Reply::Failed(text),
    }
}

/// Does what the environment asks. `program` is the name under which the plugin was called.
pub fn run(program: &Path, environment: impl Fn(&str) -> Option<OsString>, stdin: impl Read) -> Reply {
    run_in(&Setting::default(), program, environment, stdin)
}

/// The same in a process that serves many calls, each on a thread of its own. The thread must be in the node's network namespace, and
/// must do nothing after the call: it may be in the container's if the way back has failed.
pub fn run_in(
    setting: &Setting,
    program: &Path,
    environment: impl Fn(&str) -> Option<OsString>,
    stdin: impl Read,
) -> Reply {
    let mut version = Version::NEWEST;
    match answer(setting, program, environment, stdin, &mut version) {
        Ok(None) => Reply::Done(String::new()),
        Ok(Some(text)) => Reply::Done(text),
        Err(Error::Call(CallError::NoCommand)) => Reply::About,
        Err(error) => Reply::Failed(pretty(&error.failure(version))),
    }
}

fn answer(
    setting: &Setting,
    program: &Path,
    environment: impl Fn(&str) -> Option<OsString>,
    stdin: impl Read,
    version: &mut Version,
) -> Result<Option<String>, Error> {
    let call = Call { setting: setting.clone(), ..Call::read(environment)? };
    if call.verb == Verb::Version {
        return Ok(Some(dispatch::version()));
    }
    let raw = read(stdin).map_err(Error::Stdin)?;
    let value = Config::parse(&raw)?;
    *version = Config::version_of(&value);
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    let mut config = Config::read(raw, value, &name, call.verb)?;
    config.trace = call.variables.text("TRACEPARENT").and_then(|parent| parent.parse().ok());
    if let Some(socket) = &setting.agent_socket {
        config.network.agent_socket = Some(socket.clone());
    }
    match via_agent::hand_over(&name, &config, &call) {
        Some(done) => done.map(Some),
        None => dispatch::run(&config, &call),
    }
}

/// The configuration. One that is too long is not cut: what is left of it might mean something else.
fn read(stdin: impl Read) -> io::Result<Vec<u8>> {
    let mut raw = Vec::new();
    stdin.take(MAX_CONFIG + 1).read_to_end(&mut raw)?;
    if u64::try_from(raw.len()).is_ok_and(|length| length <= MAX_CONFIG) {
        return Ok(raw);
    }
    let why = format!("the configuration has more than {MAX_CONFIG} bytes");
    Err(io::Error::new(io::ErrorKind::FileTooLarge, why))
}

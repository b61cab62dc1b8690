//! shunt, the CNI plugin: puts containers on bridges whose traffic the agent's programs carry.
//!
//! One call is one process: [`run`] reads the environment and standard input, does the verb, and answers what is to be
//! printed. Nothing is kept between calls but what is in the kernel, with the agent and in the IPAM's files.

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
mod program;
mod random;
pub mod result;
mod status;
mod undo;
mod validate;
mod vlan;

use std::ffi::OsString;
use std::io::Read;
use std::path::Path;

pub use about::ABOUT;
pub use ipam::host_local;

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
    let mut version = Version::NEWEST;
    match answer(program, environment, stdin, &mut version) {
        Ok(None) => Reply::Done(String::new()),
        Ok(Some(text)) => Reply::Done(text),
        Err(Error::Call(CallError::NoCommand)) => Reply::About,
        Err(error) => Reply::Failed(pretty(&error.failure(version))),
    }
}

fn answer(
    program: &Path,
    environment: impl Fn(&str) -> Option<OsString>,
    stdin: impl Read,
    version: &mut Version,
) -> Result<Option<String>, Error> {
    let call = Call::read(environment)?;
    if call.verb == Verb::Version {
        return Ok(Some(dispatch::version()));
    }
    let mut raw = Vec::new();
    stdin.take(MAX_CONFIG).read_to_end(&mut raw).map_err(Error::Stdin)?;
    let value = Config::parse(&raw)?;
    *version = Config::version_of(&value);
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    let config = Config::read(raw, value, &name, call.verb)?;
    dispatch::run(&config, &call)
}

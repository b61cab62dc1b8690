//! One plugin of a chain: shunt's procedure on a thread of its own, or another program.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Instant;

use shunt::call::{IN_SERVICE, Verb};
use shunt::config::Personality;
use shunt::program;
use shunt::{Reply, Setting};
use tracing::Span;

use crate::failure::{Failure, codes};
use crate::settings::Settings;
use crate::subject::Subject;
use crate::trace::Trace;

/// The program to which all of its names are links.
const OWN: &str = "shunt";

/// The name of the threads on which the procedure runs.
pub const THREAD: &str = "cni-plugin";

#[cfg(not(panic = "unwind"))]
compile_error!(
    "a panic in the plugin's procedure has to end the call and not the agent: build with panic=unwind"
);

/// Who does what a plugin's `type` names.
#[derive(Debug)]
pub(crate) enum Plugin {
    /// This process, as it would under this name.
    Own(PathBuf),
    /// A program in `CNI_PATH`.
    Program(PathBuf),
}

/// What a plugin is told beside its configuration.
#[derive(Debug)]
pub(crate) struct Surroundings<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) subject: &'a Subject,
    pub(crate) trace: &'a Trace,
    /// The process that asks.
    pub(crate) caller: Option<u32>,
}

impl Plugin {
    /// Looks a plugin up. One whose name shunt shares with another project is shunt's where its file is a link to shunt.
    ///
    /// # Errors
    /// Code 7: it is nowhere.
    pub(crate) fn find(kind: &str, settings: &Settings) -> Result<Self, Failure> {
        let is_known = Personality::of_type(kind).is_some();
        if is_known && kind.starts_with(OWN) {
            return Ok(Self::Own(kind.into()));
        }
        let mut found = settings.cni_path.iter().map(|folder| folder.join(kind));
        match found.find(|path| program::is_program(path)) {
            Some(path) if is_known && is_link_to_own(&path) => Ok(Self::Own(path)),
            Some(path) => Ok(Self::Program(path)),
            None => {
                let path: Vec<_> =
                    settings.cni_path.iter().map(|folder| folder.display().to_string()).collect();
                let why =
                    format!("the plugin `{kind}` is not in {path:?} (`cni_path` of the agent's `[api]`)");
                Err(Failure::new(codes::INVALID_CONFIG, why))
            }
        }
    }

    /// Whether it is this process.
    pub(crate) fn is_own(&self) -> bool {
        matches!(self, Self::Own(_))
    }

    /// Does a verb; what it has printed.
    ///
    /// # Errors
    /// The plugin's own; code 5 for a program that does not run, 11 for one that takes too long.
    pub(crate) fn run(
        &self,
        verb: Verb,
        config: &[u8],
        surroundings: &Surroundings<'_>,
    ) -> Result<Vec<u8>, Failure> {
        match self {
            Self::Own(name) => run_here(name, verb, config, surroundings),
            Self::Program(path) => run_there(path, verb, config, surroundings),
        }
    }
}

fn is_link_to_own(path: &Path) -> bool {
    fs::read_link(path).is_ok_and(|target| target.file_name().is_some_and(|name| name == OWN))
}

/// On a thread that ends with the call: it enters the container's namespace, and the way back may fail.
fn run_here(name: &Path, verb: Verb, config: &[u8], at: &Surroundings<'_>) -> Result<Vec<u8>, Failure> {
    let setting = Setting { caller: at.caller, ..setting(at.settings) };
    match procedure(&setting, name, &variables(verb, at), config)? {
        Reply::Done(text) => Ok(text.into_bytes()),
        Reply::Failed(text) => Err(Failure::printed(OWN, text.as_bytes(), "")),
        Reply::About => Ok(Vec::new()),
    }
}

/// What the service has decided for every call.
pub(crate) fn setting(settings: &Settings) -> Setting {
    Setting {
        agent_socket: Some(settings.agent_socket.clone()),
        program_limit: Some(settings.program_limit),
        is_service: true,
        ..Setting::default()
    }
}

/// The plugin's procedure, on a thread that ends with it.
///
/// # Errors
/// Code 11 where there is no thread, [`Failure::is_fault`] where it panics.
pub(crate) fn procedure(
    setting: &Setting,
    name: &Path,
    variables: &[(&'static str, OsString)],
    config: &[u8],
) -> Result<Reply, Failure> {
    let environment =
        |wanted: &str| variables.iter().find(|(name, _)| *name == wanted).map(|(_, value)| value.clone());
    apart(|| shunt::run_in(setting, name, environment, config))
}

/// Does something on a thread of its own, the only one whose panic the agent survives (its hook knows the thread by its name).
fn apart<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, Failure> {
    let span = Span::current();
    let work = || span.in_scope(work);
    thread::scope(|scope| {
        let thread = thread::Builder::new().name(THREAD.into());
        let thread = thread.spawn_scoped(scope, work).map_err(|error| {
            Failure::new(codes::TRY_AGAIN, format!("there is no thread for the call: {error}"))
        })?;
        thread.join().map_err(|_| Failure::fault())
    })
}

fn run_there(path: &Path, verb: Verb, config: &[u8], at: &Surroundings<'_>) -> Result<Vec<u8>, Failure> {
    let mut command = Command::new(path);
    for name in Trace::NAMES {
        command.env_remove(name);
    }
    command.envs(variables(verb, at));
    let limit = at.settings.program_limit;
    let ended =
        program::run(&mut command, config, Some(Instant::now() + limit)).map_err(|error| {
            match error.kind() {
                std::io::ErrorKind::TimedOut => {
                    let why = format!("the plugin {} has not ended after {limit:?}", path.display());
                    Failure::new(codes::IO, why)
                }
                _ => Failure::new(codes::IO, format!("the plugin {}: {error}", path.display())),
            }
        })?;
    if ended.status.success() {
        return Ok(ended.output);
    }
    Err(Failure::printed(&path.display().to_string(), &ended.output, &ended.status.to_string()))
}

fn variables(verb: Verb, at: &Surroundings<'_>) -> Vec<(&'static str, OsString)> {
    let Subject { container, ifname, netns, .. } = at.subject;
    environment([verb.name(), container, netns, ifname, &at.subject.cni_args()], at.settings, at.trace)
}

/// The environment, as libcni makes it: every variable is there, empty where there is nothing to be said. Beside it shunt's own, which keeps a
/// plugin that calls others from handing them over to the service that waits for it.
pub(crate) fn environment(
    [command, container, netns, ifname, args]: [&str; 5],
    settings: &Settings,
    trace: &Trace,
) -> Vec<(&'static str, OsString)> {
    let mut variables: Vec<(&'static str, OsString)> = vec![
        ("CNI_COMMAND", command.into()),
        ("CNI_CONTAINERID", container.into()),
        ("CNI_NETNS", netns.into()),
        ("CNI_IFNAME", ifname.into()),
        ("CNI_ARGS", args.into()),
        // A folder with a colon in its name cannot be said; the configuration refuses it.
        ("CNI_PATH", std::env::join_paths(&settings.cni_path).unwrap_or_default()),
        (IN_SERVICE, "1".into()),
    ];
    variables.extend(trace.variables());
    variables
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_ends_the_call_and_nothing_else() {
        assert_eq!(apart(|| 1).unwrap(), 1);
        let ended = apart(|| assert!(thread::current().name() != Some(THREAD), "a fault")).unwrap_err();
        assert!(ended.is_fault() && ended.code == codes::OTHER, "{ended:?}");
        assert!(!Failure::new(codes::OTHER, "no").is_fault());
    }
}

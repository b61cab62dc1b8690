//! `shunt-agent test`: whether containers of this node reach what they should, and by which path.

mod attempt;
mod cases;
mod chain;
mod conflist;
mod directory;
mod ground;
mod kernel_bridge;
mod load;
mod namespace;
mod notes;
mod other_bridge;
mod outside;
mod perf;
mod policies;
mod report;
mod row;
mod sandbox;
mod talk;
mod undeleted;

use std::io;
use std::path::{Path, PathBuf};
use std::process::{self, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use clap::Args;
use nix::sys::signal::{SigSet, Signal};
use shunt_agent::config::{DEFAULT_STATE_DIR, Options};
use shunt_agent::state::plugin_directories;
use shunt_agent_api::socket_path;

use self::conflist::ConflistError;
use self::directory::{Directory, DirectoryError, left};
use self::ground::{Ground, GroundError};
use self::perf::Measured;
use self::report::Report;
use self::undeleted::Undeleted;
use super::escape::escape;
use super::exit::{INCONSISTENT, UNREACHABLE};
use super::printing::{code_with, complain, print_json, print_text};
use super::query::Query;

/// Where namespaces are held that the agent's CNI service takes, unless its file says otherwise.
const NETNS_DIR: &str = "/run/netns";

/// Run it as root in the node's network namespace, after an installation or with a new kernel. It makes containers by the node's own
/// configuration and a host beyond the node, and deletes them.
#[derive(Args, Debug)]
pub(crate) struct NodeTest {
    #[command(flatten)]
    query: Query,
    /// The network configuration, a list or one plugin, or the directory in which the first one that names shunt is taken.
    #[arg(long, value_name = "PATH", default_value = "/etc/cni/net.d")]
    conflist: PathBuf,
    /// Where the plugins are. Directories that `install-plugin` has noted are looked at as well, and `[cluster]`'s.
    #[arg(long, value_name = "DIR", default_value = plugin_directories::DEFAULT)]
    bin_dir: PathBuf,
    /// Also measure round trips, connections and streams beside the kernel's bridge; takes half a minute more.
    #[arg(long)]
    perf: bool,
    /// Where its namespaces are held meanwhile, in a directory `shunt-test` of its own; one test at a time. For `viaAgent` it is one of
    /// the agent's `netns_dirs`.
    #[arg(long, value_name = "DIR", default_value = NETNS_DIR)]
    run_dir: PathBuf,
}

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
enum TestError {
    #[error(transparent)]
    Conflist(#[from] ConflistError),
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    #[error(transparent)]
    Ground(#[from] GroundError),
    #[error("signals cannot be waited for: {0}")]
    Signals(#[from] io::Error),
    #[error("ended by a signal, and everything was deleted")]
    Interrupted,
    #[error("ended by a signal, and not everything was deleted")]
    Left,
}

impl NodeTest {
    /// 0 everything works that this node has, 1 it could not be tried or measured, 3 something does not work, or is left.
    pub(super) fn run(self) -> ExitCode {
        let undeleted = Undeleted::default();
        let error = match self.report(&undeleted) {
            Ok(report) => return self.show(&report),
            Err(error) => error,
        };
        complain(escape(&error.to_string()));
        let undeleted = undeleted.all();
        undeleted.iter().for_each(|what| complain(format_args!("not deleted: {}", escape(what))));
        if undeleted.is_empty() { UNREACHABLE.into() } else { INCONSISTENT.into() }
    }

    fn show(&self, report: &Report) -> ExitCode {
        let printed = if self.query.json { print_json(report) } else { print_text(&report.text()) };
        if printed.is_ok() && report.tried_nothing() {
            complain("nothing was tried: every case is skipped, and DETAIL says why");
        }
        code_with(printed, report.code().into())
    }

    fn bin_dirs(&self) -> Vec<PathBuf> {
        let (file, _) = Options::read_usable(None);
        let of_cluster = file.cluster_bin_dir();
        let state_dir = file.state_dir.unwrap_or_else(|| DEFAULT_STATE_DIR.into());
        plugin_directories::all(self.bin_dir.clone(), of_cluster, &state_dir)
    }

    fn report(&self, undeleted: &Undeleted) -> Result<Report, TestError> {
        let signalled = end_by_signals(self.run_dir.clone())?;
        let is_over = || signalled.load(Ordering::Relaxed);
        let bin_dirs = self.bin_dirs();
        let chain = conflist::find(&self.conflist, &bin_dirs)?;
        let network = chain.name().to_owned();
        let socket = socket_path(self.query.socket.as_deref());
        let directory = Directory::take(&self.run_dir, &bin_dirs, undeleted.clone())?;
        let ground = Ground::make(chain, socket, directory, undeleted.clone())?;
        let cases = cases::run(&ground, is_over);
        let measured = if self.perf { perf::run(&ground, is_over) } else { Measured::default() };
        drop(ground);
        let undeleted = undeleted.all();
        match (is_over(), undeleted.is_empty()) {
            (false, _) => Ok(Report::new(network, cases, measured, undeleted)),
            (true, true) => Err(TestError::Interrupted),
            (true, false) => Err(TestError::Left),
        }
    }
}

/// Deletes the containers of a test that was killed, where namespaces are held unless something else was said. Says what is left.
pub(super) fn release(bin_dirs: &[PathBuf]) -> Vec<String> {
    directory::release(Path::new(NETNS_DIR), bin_dirs)
}

/// What is set by the first signal that would end the program: it ends once everything is deleted. A second one ends it at once.
fn end_by_signals(run_dir: PathBuf) -> io::Result<Arc<AtomicBool>> {
    let signals = SigSet::from_iter([Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP]);
    // Threads that are made from now on leave these to the one that waits for them.
    signals.thread_block()?;
    let is_over = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&is_over);
    let wait = move || {
        if signals.wait().is_ok() {
            told.store(true, Ordering::Relaxed);
        }
        if signals.wait().is_ok() {
            end_at_once(&run_dir);
        }
    };
    thread::Builder::new().name("signals".to_owned()).spawn(wait)?;
    Ok(is_over)
}

fn end_at_once(run_dir: &Path) -> ! {
    complain("ended by a second signal");
    let left = left(run_dir);
    left.iter().for_each(|what| complain(format_args!("not deleted: {what}; the next test deletes it")));
    process::exit(if left.is_empty() { UNREACHABLE.into() } else { INCONSISTENT.into() })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::NETNS_DIR;
    use crate::config::ApiOptions;

    #[test]
    fn namespaces_are_held_where_the_cni_service_takes_them() {
        assert!(ApiOptions::default().netns_dirs.iter().any(|taken| taken == Path::new(NETNS_DIR)));
    }
}

//! Takes everything of shunt's off the node, under living containers.
//!
//! In: where the agent's directories and the plugins are. Out: what was done, or what is in the way. Nothing is changed while anything
//! is in the way, unless that is forced. The order is what keeps traffic: host ports and masquerading are handed to the plugins that were kept
//! while the programs still serve, then the agent is stopped, and its directories stay locked until nothing is left in them. What bridges goes
//! on by the kernel's bridge, which has every container's MAC address already.

mod bridges;
mod cluster_network;
mod configurations;
mod directories;
mod hand_over;
mod living;
mod names;
mod notes;
mod obstacle;
mod own_files;
mod reference;
mod scratch;
mod stop;

use std::path::{Path, PathBuf};

use shunt_netlink::NetlinkError;

use self::hand_over::Handed;
use self::living::living;
use self::names::PluginNames;
pub(crate) use self::names::{KEPT, PLUGIN, UNFINISHED, is_ours};
use self::notes::Notes;
pub use self::obstacle::Obstacle;
use self::reference::ReferencePlugins;
use crate::agent::{Agent, OpenError, PreviousState};
use crate::cluster;
use crate::config::Config;
use crate::kernel::unshare_all;
use crate::state::{StoreError, recorded};

/// Where the plugins and their configurations are.
#[derive(Clone, Debug)]
pub struct Places {
    /// The runtimes' plugin directories.
    pub bin_dirs: Vec<PathBuf>,
    /// Where the agent's program is; none where a package manager removes it.
    pub sbin_dir: Option<PathBuf>,
    /// The runtime's network configurations.
    pub conf_dir: PathBuf,
    /// Where netavark looks for plugins.
    pub netavark_dir: PathBuf,
    /// Where podman keeps its networks.
    pub podman_networks: PathBuf,
}

/// Why shunt is still there, or some of it.
#[derive(Debug, thiserror::Error)]
pub enum UninstallError {
    /// What is in the way; nothing was changed.
    #[error("not uninstalled, and nothing was changed:\n{}\nMend that, or say --force", list(.0))]
    Obstacles(Vec<Obstacle>),
    /// The agent does not end.
    #[error(transparent)]
    Stop(#[from] stop::StopError),
    /// The state directory.
    #[error(transparent)]
    State(#[from] StoreError),
    /// The kernel does not say which containers are there.
    #[error("which containers are there is not known: {0}")]
    Links(#[from] NetlinkError),
    /// The programs cannot be taken over, to be taken away. They go on serving.
    #[error("the agent was stopped, and its programs cannot be taken over: {0}")]
    Open(#[from] OpenError),
    /// What could not be taken away; all else is gone.
    #[error("these are left, and all else is gone:\n{}\nRun it again", list(.0))]
    Left(Vec<String>),
}

fn list<T: ToString>(lines: &[T]) -> String {
    lines.iter().map(|line| format!("  {}", line.to_string())).collect::<Vec<_>>().join("\n")
}

/// What was done.
#[derive(Debug, Default)]
pub struct Uninstalled {
    /// Attachments that go on without shunt.
    pub attachments: usize,
    /// Those of them whose host ports or masquerading other plugins' rules do now.
    pub handed_over: usize,
    /// The process that was stopped.
    pub stopped: Option<i32>,
    /// The files that were removed or put back, and what stays as it is another's.
    pub files: Vec<String>,
    /// What was lost, by order.
    pub lost: Vec<Obstacle>,
    /// What is left to others, and what to do about it.
    pub warnings: Vec<String>,
}

/// The network configuration that the agent has written, and that goes with it.
fn written_by_agent(config: &Config) -> Option<&Path> {
    let conflist = config.cluster.as_ref().map(|cluster| &*cluster.conflist);
    conflist.filter(|path| cluster::mark::is_managed(path))
}

/// Whether anything of shunt's is there: the plugin, or what an agent makes where it runs.
pub fn is_there(config: &Config, places: &Places) -> bool {
    names::is_installed(&places.bin_dirs) || directories::are_used(config) || config.socket.exists()
}

/// What would be in the way. Changes nothing and needs no agent.
///
/// # Errors
/// The state directory cannot be read.
pub fn obstacles(config: &Config, places: &Places) -> Result<Vec<Obstacle>, UninstallError> {
    let plugins = ReferencePlugins::find(&places.bin_dirs);
    let mut obstacles = Vec::new();
    if names::is_installed(&places.bin_dirs) {
        for (directory, own) in configured(config, places) {
            obstacles.extend(configurations::obstacles(directory, own));
        }
    }
    let recorded = recorded(&config.state_dir)?;
    let ports = living(recorded.ports)?;
    if let Some(conflist) = written_by_agent(config) {
        obstacles.extend(cluster_network::obstacles(&places.conf_dir, conflist, &ports)?);
    }
    obstacles.extend(ports.iter().flat_map(|port| obstacle::of_port(port, &plugins)));
    obstacles.extend(recorded.unreadable.into_iter().map(|(path, error)| Obstacle::Unreadable {
        file: path.display().to_string(),
        why: error.to_string(),
    }));
    Ok(obstacles)
}

/// What is in nobody's way, and is left: network configurations that name the plugin where it is gone already, as after `--force`.
pub fn warnings(config: &Config, places: &Places) -> Vec<String> {
    if names::is_installed(&places.bin_dirs) {
        return Vec::new();
    }
    let directories = configured(config, places).into_iter();
    directories.flat_map(|(directory, own)| configurations::warnings(directory, own)).collect()
}

/// The directories of network configurations, and the file in each that goes with the agent.
fn configured<'a>(config: &'a Config, places: &'a Places) -> [(&'a Path, Option<&'a Path>); 2] {
    [(&places.conf_dir, written_by_agent(config)), (&places.podman_networks, None)]
}

/// Uninstalls shunt from the network namespace of the calling thread.
///
/// # Errors
/// [`UninstallError`]. Every step may be repeated.
pub fn uninstall(config: &Config, places: &Places, force: bool) -> Result<Uninstalled, UninstallError> {
    let lost = obstacles(config, places)?;
    if !lost.is_empty() && !force {
        return Err(UninstallError::Obstacles(lost));
    }
    let mut done = Uninstalled { lost, warnings: warnings(config, places), ..Uninstalled::default() };
    let mut left =
        hand_over::sweep(&Notes::beside(&config.socket), &ReferencePlugins::find(&places.bin_dirs));
    // A node where no agent ever ran gets no programs now.
    let state =
        directories::are_used(config).then(|| take_over(config, places, force, &mut done)).transpose()?;
    let ports = recorded(&config.state_dir)?.ports;
    let mut agent = state.map(|state| Agent::succeed(config, state)).transpose()?;
    for bin_dir in &places.bin_dirs {
        done.files.extend(names::remove_link(&places.netavark_dir, bin_dir, &mut left));
        done.files.extend(PluginNames::at(bin_dir).put_back(&mut left));
    }
    left.extend(cluster::removal::remove());
    let conflist = written_by_agent(config);
    let is_cluster_network = conflist.is_some();
    done.files.extend(conflist.and_then(|conflist| directories::remove_file(conflist, &mut left)));
    let program = places.sbin_dir.as_ref().map(|sbin_dir| sbin_dir.join("shunt-agent"));
    done.files.extend(program.and_then(|program| directories::remove_file(&program, &mut left)));
    if let Some(agent) = &mut agent {
        done.attachments = agent.attachments();
        left.extend(agent.retire());
    }
    left.extend(unshare_all().err().map(|error| format!("the queues of uplinks: {error}")));
    left.extend(bridges::forget());
    done.files.extend(directories::remove(config, &ports, is_cluster_network, &mut left));
    // Until now it has kept any other agent out.
    drop(agent);
    if left.is_empty() { Ok(done) } else { Err(UninstallError::Left(left)) }
}

/// Hands over what other plugins can do, and stops the agent. What was attached in between is handed over behind it.
fn take_over(
    config: &Config,
    places: &Places,
    force: bool,
    done: &mut Uninstalled,
) -> Result<PreviousState, UninstallError> {
    let plugins = ReferencePlugins::find(&places.bin_dirs);
    let mut handed = Handed::noted(Notes::beside(&config.socket));
    let mut hand_over = |handed: &mut Handed| {
        let failures = handed.take(&living(recorded(&config.state_dir)?.ports)?, &plugins);
        if failures.is_empty() || force {
            done.lost.extend(failures);
            return Ok(());
        }
        handed.take_back(&plugins);
        Err(UninstallError::Obstacles(failures))
    };
    hand_over(&mut handed)?;
    let stopped = stop::stop(config);
    let state = stopped.map_err(UninstallError::from).and_then(|stopped| {
        let state = PreviousState::take(&config.state_dir)?;
        Ok((stopped, state))
    });
    let (stopped, state) = state.inspect_err(|_| handed.take_back(&plugins))?;
    hand_over(&mut handed)?;
    done.stopped = stopped;
    done.handed_over = handed.keep();
    Ok(state)
}

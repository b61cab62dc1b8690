//! Keeps on this node what the cluster's nodes mean for it, and asks the agent as any client does.

use std::convert::Infallible;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use ipnet::IpNet;
use shunt_agent_api::{Reply, Request};
use tokio::sync::watch;
use tokio::time::timeout;

use super::condition;
use super::learned::Known;
use super::passing::Passing;
use super::{teller, watcher};
use crate::agent::Core;
use crate::capacity::slice::NodeNameError;
use crate::cluster::conflist::{self, Said};
use crate::cluster::ways::{self, Kept};
use crate::cluster::{Fault, Members, Plan, PodsMtu, Reason, gateways, known};
use crate::config::{ClusterOptions, Config, KubernetesOptions};
use crate::kubernetes::node_name;

/// How often everything is looked at: routes that somebody has deleted, pods that were made with an older list.
const PERIOD: Duration = Duration::from_secs(5);

/// Changes that come together are done together.
const TOGETHER: Duration = Duration::from_millis(100);

/// As many warnings are named.
const MOST: usize = 16;

/// The plugin's name in the plugin directory.
const PLUGIN: &str = "shunt";

/// The agent as the cluster's network.
#[derive(Debug)]
pub struct ClusterNetwork {
    options: ClusterOptions,
    kubernetes: KubernetesOptions,
    node: String,
    state_dir: PathBuf,
    socket: PathBuf,
}

impl ClusterNetwork {
    /// None unless the configuration asks for it. Nothing is asked of the server yet.
    ///
    /// # Errors
    /// [`NodeNameError`].
    pub fn of(config: &Config) -> Result<Option<Self>, NodeNameError> {
        let Some(options) = config.cluster.clone() else { return Ok(None) };
        let kubernetes = config.kubernetes.clone().unwrap_or_default();
        let node = node_name::of_options(&kubernetes)?;
        let (state_dir, socket) = (config.state_dir.clone(), config.socket.clone());
        Ok(Some(Self { options, kubernetes, node, state_dir, socket }))
    }

    /// Keeps it, as long as the agent runs.
    pub async fn run(self, core: Core) -> Infallible {
        let mut written = known::read(&self.state_dir);
        let begun = Known { members: written.clone(), ..Known::default() };
        let (sender, mut receiver) = watch::channel(begun);
        let watching = watcher::follow(self.kubernetes.clone(), self.node.clone(), sender);
        let (told, to_tell) = watch::channel(Vec::new());
        let telling = teller::tell(&self.kubernetes, &self.node, to_tell, &core);
        let keeping = async {
            let mut is_first = true;
            let mut passing = Passing::new(written.0.get(&self.node).cloned());
            loop {
                let known = receiver.borrow_and_update().clone();
                passing.see(&known, &self.node, Instant::now(), SystemTime::now());
                let mut faults: Vec<Fault> = passing.silence(&known).into_iter().map(Fault::from).collect();
                faults.extend(self.keep(&known, &mut written, is_first, &core).await);
                is_first = false;
                core.remark("cluster", remark(&faults)).await;
                faults.extend(passing.happened());
                told.send_if_modified(|before| replace(before, faults));
                if let Ok(Ok(())) = timeout(PERIOD, receiver.changed()).await {
                    tokio::time::sleep(TOGETHER).await;
                }
            }
        };
        tokio::select! {
            never = watching => never,
            never = keeping => never,
            never = telling => never,
        }
    }

    /// Does what is to be done; what is wrong.
    async fn keep(&self, known: &Known, written: &mut Members, is_first: bool, core: &Core) -> Vec<Fault> {
        let plan = Plan::of(&self.options, &self.node, &known.members);
        let mut faults = plan.warnings.clone();
        if known.members != *written {
            let (state_dir, members) = (self.state_dir.clone(), known.members.clone());
            match aside(move || known::write(&state_dir, &members)).await {
                Ok(Ok(())) => written.clone_from(&known.members),
                Ok(Err(error)) => {
                    let why = format!("what is known of the cluster cannot be written down: {error}");
                    faults.push(why.into());
                }
                Err(why) => faults.push(why.into()),
            }
        }
        // Without a prefix of its own a node cannot tell what is led away from it: what there is stays.
        if plan.own.is_empty() {
            return faults;
        }
        let (options, wanted) = (self.options.clone(), plan.clone());
        let kept = aside(move || ways::keep(&options, &wanted, is_first)).await;
        let kept = kept.and_then(|kept| kept.map_err(|error| format!("ways to other nodes: {error}")));
        let kept = kept.unwrap_or_else(|why| Kept { warnings: vec![why], ..Kept::default() });
        faults.extend(kept.warnings.into_iter().map(Fault::from));
        faults.extend(exempt(core, &plan.pods).await.map(Fault::from));
        let earlier = conflist::earlier_prefixes(&self.options.conflist, &plan.own);
        let gateways = keep_gateways(core, &plan.own, &earlier).await.unwrap_or_else(|why| vec![why]);
        faults.extend(gateways.into_iter().map(|text| Reason::BridgeAddress.fault(text)));
        let mtu = match kept.mtu {
            PodsMtu::Kernels => None,
            PodsMtu::Bytes(mtu) => Some(mtu),
            PodsMtu::Unknown => return faults,
        };
        let (options, socket) = (self.options.clone(), self.socket.clone());
        match aside(move || configure(&options, &socket, &plan, &earlier, mtu)).await {
            Ok(Ok(())) if known.is_unavailable => {
                let cleared = condition::clear(&self.kubernetes, &self.node).await;
                faults.extend(cleared.err().map(|error| Fault::from(error.to_string())));
            }
            Ok(Ok(())) => {}
            Ok(Err(fault)) => faults.push(fault),
            Err(why) => faults.push(why.into()),
        }
        faults
    }
}

/// Puts what is wrong now in the place of what was; whether that is another.
fn replace(before: &mut Vec<Fault>, now: Vec<Fault>) -> bool {
    let differs = *before != now;
    *before = now;
    differs
}

/// Does what blocks on a thread of its own.
async fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, String> {
    tokio::task::spawn_blocking(work).await.map_err(|error| error.to_string())
}

/// Writes the network configuration where the plugin is there that it names. Fine only where runtimes read it.
fn configure(
    options: &ClusterOptions,
    socket: &Path,
    plan: &Plan,
    earlier: &[IpNet],
    mtu: Option<u32>,
) -> Result<(), Fault> {
    let path = &options.conflist;
    let plugin = options.cni_bin_dir.join(PLUGIN);
    if !plugin.is_file() {
        let missing = if options.cni_bin_dir.is_dir() { &plugin } else { &options.cni_bin_dir };
        return Err(Reason::PluginMissing.fault(format!(
            "{} is not there, so {} is not written: install the plugin",
            missing.display(),
            path.display()
        )));
    }
    let content = conflist::content(&Said { own: &plan.own, earlier, pods: &plan.pods, mtu }, socket);
    match conflist::write(path, &content) {
        Ok(true) => tracing::info!(file = %path.display(), "network configuration written"),
        Ok(false) => {}
        Err(error) => {
            return Err(Reason::ConfigurationNotWritten.fault(not_written(path, &error)));
        }
    }
    conflist::read_first(path).map_or(Ok(()), |other| {
        Err(Reason::ConfigurationShadowed.fault(format!(
            "runtimes read {} and not {}, as its name comes first: remove or rename it",
            other.display(),
            path.display()
        )))
    })
}

/// Why the configuration is not written, and what to do where its directory is missing.
fn not_written(path: &Path, error: &io::Error) -> String {
    match path.parent().filter(|directory| !directory.is_dir()) {
        Some(directory) => format!(
            "{} cannot be written, for {} is not there: make the directory that the runtime reads, or name another in conflist",
            path.display(),
            directory.display()
        ),
        None => format!("{} cannot be written: {error}", path.display()),
    }
}

/// What the status says.
fn remark(warnings: &[Fault]) -> Option<String> {
    let named = warnings.iter().take(MOST).map(ToString::to_string).collect::<Vec<_>>().join("; ");
    match warnings.len().saturating_sub(MOST) {
        0 if named.is_empty() => None,
        0 => Some(format!("cluster: {named}")),
        more => Some(format!("cluster: {named}; and {more} more")),
    }
}

/// Has running pods seen by each other; what is wrong.
async fn exempt(core: &Core, pods: &[IpNet]) -> Option<String> {
    let destinations = pods.iter().map(ToString::to_string).collect();
    match core.ask(Request::Exempt { network: conflist::NETWORK.to_owned(), destinations }).await {
        Reply::Error(error) => Some(format!("running pods are masqueraded as before: {error}")),
        _ => None,
    }
}

/// Has the bridge have the gateways that new pods and those of earlier pod CIDRs need; what is wrong.
async fn keep_gateways(core: &Core, own: &[IpNet], earlier: &[IpNet]) -> Result<Vec<String>, String> {
    let pods = if earlier.is_empty() { Vec::new() } else { pods(core).await? };
    let (own, earlier) = (own.to_vec(), earlier.to_vec());
    let kept = aside(move || gateways::keep(&own, &earlier, &pods)).await?;
    kept.map_err(|error| format!("gateways of pods: {error}"))
}

/// The addresses of the network's pods.
async fn pods(core: &Core) -> Result<Vec<IpAddr>, String> {
    match core.ask(Request::Ports).await {
        Reply::Ports(ports) => {
            let ours = ports.into_iter().filter(|port| port.network == conflist::NETWORK);
            Ok(ours.flat_map(|port| port.ips).collect())
        }
        Reply::Error(error) => Err(format!("gateways of pods: {error}")),
        _ => Err("gateways of pods: the agent has not said which pods there are".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn missing_directories_are_named_with_what_to_do() {
        let dir = tempfile::tempdir().unwrap();
        let (plugins, conf) = (dir.path().join("bin"), dir.path().join("net.d"));
        let options = ClusterOptions {
            conflist: conf.join("10-shunt.conflist"),
            cni_bin_dir: plugins.clone(),
            ..ClusterOptions::default()
        };
        let own = vec!["10.244.1.0/24".parse().unwrap()];
        let plan = Plan { own: own.clone(), pods: own, ..Plan::default() };
        let tried = || configure(&options, Path::new("/run/s.sock"), &plan, &[], None);
        let refused = |reason: Reason, named: &str| {
            let fault = tried().unwrap_err();
            assert_eq!(fault.reason, Some(reason), "{fault}");
            assert!(fault.text.contains(named), "{named} in {fault}");
        };
        refused(Reason::PluginMissing, &format!("{} is not there, so", plugins.display()));
        fs::create_dir(&plugins).unwrap();
        refused(Reason::PluginMissing, &format!("{} is not there, so", plugins.join(PLUGIN).display()));
        fs::write(plugins.join(PLUGIN), "").unwrap();
        refused(Reason::ConfigurationNotWritten, &format!("for {} is not there: make", conf.display()));
        fs::create_dir(&conf).unwrap();
        tried().unwrap();
        assert!(options.conflist.is_file());
    }
}

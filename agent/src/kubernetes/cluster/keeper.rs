//! Keeps on this node what the cluster's nodes mean for it, and asks the agent as any client does.

use std::convert::Infallible;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ipnet::IpNet;
use shunt_agent_api::{Reply, Request};
use tokio::sync::watch;
use tokio::time::timeout;

use super::condition;
use super::learned::Known;
use super::watcher;
use crate::agent::Core;
use crate::capacity::slice::NodeNameError;
use crate::cluster::conflist::{self, Said};
use crate::cluster::ways::{self, Kept};
use crate::cluster::{Members, Plan, PodsMtu, gateways, known};
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
        let keeping = async {
            let mut is_first = true;
            loop {
                let known = receiver.borrow_and_update().clone();
                let warnings = self.keep(&known, &mut written, is_first, &core).await;
                is_first = false;
                core.remark("cluster", remark(&warnings)).await;
                if let Ok(Ok(())) = timeout(PERIOD, receiver.changed()).await {
                    tokio::time::sleep(TOGETHER).await;
                }
            }
        };
        tokio::select! {
            never = watching => never,
            never = keeping => never,
        }
    }

    /// Does what is to be done; what is wrong, in words.
    async fn keep(&self, known: &Known, written: &mut Members, is_first: bool, core: &Core) -> Vec<String> {
        let plan = Plan::of(&self.options, &self.node, &known.members);
        let mut warnings = plan.warnings.clone();
        warnings.extend(known.fault.iter().map(|fault| format!("the nodes are not watched: {fault}")));
        if known.members != *written {
            let (state_dir, members) = (self.state_dir.clone(), known.members.clone());
            match aside(move || known::write(&state_dir, &members)).await {
                Ok(Ok(())) => written.clone_from(&known.members),
                Ok(Err(error)) => {
                    warnings.push(format!("what is known of the cluster cannot be written down: {error}"));
                }
                Err(why) => warnings.push(why),
            }
        }
        // Without a prefix of its own a node cannot tell what is led away from it: what there is stays.
        if plan.own.is_empty() {
            return warnings;
        }
        let (options, wanted) = (self.options.clone(), plan.clone());
        let kept = aside(move || ways::keep(&options, &wanted, is_first)).await;
        let kept = kept.and_then(|kept| kept.map_err(|error| format!("ways to other nodes: {error}")));
        let kept = kept.unwrap_or_else(|why| Kept { warnings: vec![why], ..Kept::default() });
        warnings.extend(kept.warnings);
        warnings.extend(exempt(core, &plan.pods).await);
        let earlier = conflist::earlier_prefixes(&self.options.conflist, &plan.own);
        warnings.extend(keep_gateways(core, &plan.own, &earlier).await.unwrap_or_else(|why| vec![why]));
        let mtu = match kept.mtu {
            PodsMtu::Kernels => None,
            PodsMtu::Bytes(mtu) => Some(mtu),
            PodsMtu::Unknown => return warnings,
        };
        let (options, socket) = (self.options.clone(), self.socket.clone());
        match aside(move || configure(&options, &socket, &plan, &earlier, mtu)).await {
            Ok(Ok(())) if known.is_unavailable => {
                let cleared = condition::clear(&self.kubernetes, &self.node).await;
                warnings.extend(cleared.err().map(|error| error.to_string()));
            }
            Ok(Ok(())) => {}
            Ok(Err(why)) | Err(why) => warnings.push(why),
        }
        warnings
    }
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
) -> Result<(), String> {
    let path = &options.conflist;
    let plugin = options.cni_bin_dir.join(PLUGIN);
    if !plugin.is_file() {
        return Err(format!(
            "{} is not there, so {} is not written: install the plugin",
            plugin.display(),
            path.display()
        ));
    }
    let content = conflist::content(&Said { own: &plan.own, earlier, pods: &plan.pods, mtu }, socket);
    match conflist::write(path, &content) {
        Ok(true) => tracing::info!(file = %path.display(), "network configuration written"),
        Ok(false) => {}
        Err(error) => return Err(format!("{} cannot be written: {error}", path.display())),
    }
    conflist::read_first(path).map_or(Ok(()), |other| {
        Err(format!(
            "runtimes read {} and not {}, as its name comes first: remove or rename it",
            other.display(),
            path.display()
        ))
    })
}

/// What the status says.
fn remark(warnings: &[String]) -> Option<String> {
    let named = warnings.iter().take(MOST).cloned().collect::<Vec<_>>().join("; ");
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

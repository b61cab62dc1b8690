//! Values that this node cannot have: a group, an interface, an address or a directory that it lacks.

use std::fs;
use std::io;
use std::net::TcpListener;
use std::path::Path;

use crate::capacity::slice::check_node_name;
use crate::capacity::{Speed, Speeds, node_name};
use crate::config::{Config, Fault};
use crate::datapath::attach::cgroup::find_cgroup;
use crate::datapath::mount::{self, MountError};
use crate::server::{Listener, ListenerError};

/// What is wrong with one key, and what to do.
struct Finding {
    key: String,
    reason: String,
    cure: &'static str,
    is_refused: bool,
}

impl Finding {
    /// The agent does not start with it.
    fn error(key: &str, reason: impl ToString, cure: &'static str) -> Self {
        Self { key: key.to_owned(), reason: reason.to_string(), cure, is_refused: true }
    }

    /// The agent starts, and says so in its status.
    fn warning(key: &str, reason: impl ToString, cure: &'static str) -> Self {
        Self { is_refused: false, ..Self::error(key, reason, cure) }
    }
}

/// What of a configuration this node cannot have.
pub(super) fn faults(config: &Config) -> Vec<Fault> {
    let looks = [socket, group, api, directories, bpffs, metrics, cgroup, uplinks, kubernetes, cluster];
    let found = looks.iter().flat_map(|look| look(config));
    let fault = |Finding { key, reason, cure, is_refused }| Fault {
        line: config.origins.line(&key),
        key: Some(key),
        reason,
        cure: cure.to_owned(),
        is_refused,
    };
    found.map(fault).collect()
}

fn socket(config: &Config) -> Vec<Finding> {
    listening("socket", &config.socket)
}

fn listening(key: &str, path: &Path) -> Vec<Finding> {
    let cure = "name another path for the socket";
    let found = match Listener::look(path) {
        // An agent that runs does not make its own file a bad one.
        Ok(_) | Err(ListenerError::Taken(_)) => None,
        Err(error) if is_closed(&error) => None,
        Err(error) => Some(Finding::error(key, error, cure)),
    };
    found.into_iter().collect()
}

/// Whether it can be looked at with more rights only.
fn is_closed(error: &ListenerError) -> bool {
    matches!(error, ListenerError::Io { source, .. } if source.kind() == io::ErrorKind::PermissionDenied)
}

fn group(config: &Config) -> Vec<Finding> {
    members("group", config.group.as_deref())
}

fn members(key: &str, group: Option<&str>) -> Vec<Finding> {
    let error = group.map(Listener::group_number).and_then(Result::err);
    error.map(|error| Finding::error(key, error, "make the group, or name another one")).into_iter().collect()
}

fn api(config: &Config) -> Vec<Finding> {
    let Some(api) = &config.api else { return Vec::new() };
    let mut found = listening("api.socket", &api.socket);
    if api.socket == config.socket {
        let reason = "it is the agent's own socket, too";
        found.push(Finding::error("api.socket", reason, "name another path for one of the two"));
    }
    found.extend(members("api.group", api.group.as_deref()));
    found
}

fn directories(config: &Config) -> Vec<Finding> {
    let is_other = fs::metadata(&config.state_dir).is_ok_and(|found| !found.is_dir());
    let reason = format!("{} is there and is no directory", config.state_dir.display());
    is_other.then(|| Finding::error("state_dir", reason, "name a directory")).into_iter().collect()
}

fn bpffs(config: &Config) -> Vec<Finding> {
    let found = match mount::look(&config.bpffs) {
        Ok(_) => None,
        Err(MountError::Parent { source, .. }) if source.kind() == io::ErrorKind::PermissionDenied => None,
        Err(error) => {
            Some(Finding::error("bpffs", error, "name a directory directly below a BPF file system"))
        }
    };
    found.into_iter().collect()
}

fn metrics(config: &Config) -> Vec<Finding> {
    // Port 0 is any: only the address is asked for.
    let address = config.metrics.map(|metrics| metrics.ip());
    let missing = address.filter(|ip| {
        TcpListener::bind((*ip, 0)).is_err_and(|error| error.kind() == io::ErrorKind::AddrNotAvailable)
    });
    let cure = "name one of its addresses, or 0.0.0.0 or [::] for all";
    let finding = |ip| Finding::error("metrics", format!("{ip} is no address of this node"), cure);
    missing.map(finding).into_iter().collect()
}

fn cgroup(config: &Config) -> Vec<Finding> {
    let error = config.cgroup.as_deref().and_then(|path| find_cgroup(Some(path)).err());
    let cure = "name a directory of cgroup2, as /sys/fs/cgroup";
    error.map(|error| Finding::warning("cgroup", error, cure)).into_iter().collect()
}

fn uplinks(config: &Config) -> Vec<Finding> {
    if config.uplinks.is_empty() {
        return Vec::new();
    }
    let Ok(mut speeds) = Speeds::open() else { return Vec::new() };
    let mut findings = Vec::new();
    for (name, uplink) in &config.uplinks {
        let key = Config::uplink_key(name);
        match speeds.read(name) {
            Err(error) => findings.push(Finding::warning(&key, error, "name an interface of this node")),
            Ok(speed) => {
                let cure = if speed == Speed::NoLink {
                    "make the interface, or name another one"
                } else {
                    "as `egress = \"10G\"`"
                };
                findings
                    .extend(uplink.totals(speed).err().map(|unknown| Finding::warning(&key, unknown, cure)));
            }
        }
    }
    findings
}

fn kubernetes(config: &Config) -> Vec<Finding> {
    let is_wanted = config.kubernetes.is_some() || config.cluster.is_some();
    let options = config.kubernetes.clone().unwrap_or_default();
    let name = options.node.unwrap_or_else(node_name);
    let unusable = check_node_name(&name).err().filter(|_| is_wanted);
    let unusable = unusable
        .map(|error| Finding::error("kubernetes.node", error, "write the name that `kubectl get nodes` has"));
    let unread = options.kubeconfig.and_then(|path| {
        let error = shunt_regular_file::open(&path).err()?;
        let reason = format!("{}: {error}", path.display());
        Some(Finding::warning("kubernetes.kubeconfig", reason, "name a kubeconfig that the agent can read"))
    });
    unusable.into_iter().chain(unread).collect()
}

fn cluster(config: &Config) -> Vec<Finding> {
    let Some(cluster) = &config.cluster else { return Vec::new() };
    let missing = |key, directory: &Path, cure| {
        let reason = || format!("there is no directory {}", directory.display());
        (!directory.is_dir()).then(|| Finding::warning(key, reason(), cure))
    };
    let conflist = cluster.conflist.parent().unwrap_or(Path::new("/"));
    let plugins = missing("cluster.cni_bin_dir", &cluster.cni_bin_dir, "name the runtime's plugin directory");
    let written =
        missing("cluster.conflist", conflist, "name a file in the runtime's configuration directory");
    plugins.into_iter().chain(written).collect()
}

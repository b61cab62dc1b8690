//! `[kubernetes]` in the configuration file.

use std::path::PathBuf;

use serde::Deserialize;

/// As what the uplinks' bandwidth is published.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Publish {
    /// A slice where the API server knows `resource.k8s.io/v1`, else the node's capacity.
    #[default]
    Auto,
    /// A `ResourceSlice`, for claims (dynamic resource allocation).
    Slice,
    /// Capacity of the node, for requests of containers.
    Node,
}

/// How the agent reaches the API server, and as what it publishes there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct KubernetesOptions {
    /// The file that names the server and who the agent is there; else the pod's service account.
    pub kubeconfig: Option<PathBuf>,
    /// The node's name; else [`node_name`].
    pub node: Option<String>,
    /// As what.
    pub publish: Publish,
}

/// The node's name by the environment (`NODE_NAME`, as pods are given it), else the host's name in lower case: kubelets
/// register a node under that unless they are told otherwise.
pub fn node_name() -> String {
    std::env::var("NODE_NAME").unwrap_or_else(|_| {
        let host = nix::unistd::gethostname().unwrap_or_default();
        host.to_string_lossy().to_lowercase()
    })
}

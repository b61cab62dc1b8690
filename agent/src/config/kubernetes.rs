//! `[kubernetes]` in the configuration file.

use std::path::{Path, PathBuf};

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

/// How the agent reaches the API server and the kubelet, and as what it publishes.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct KubernetesOptions {
    /// The file that names the server and who the agent is there; else the pod's service account.
    pub kubeconfig: Option<PathBuf>,
    /// The node's name; else as `NODE_NAME` or the host's name has it.
    pub node: Option<String>,
    /// As what.
    pub publish: Publish,
    /// Whether claims are prepared for the node's kubelet.
    pub dra: bool,
    /// Its root directory.
    pub kubelet_root: PathBuf,
    /// Seconds for which the API server has to say that a prepared claim is not its pod's any more, until it is forgotten; 0 for never.
    pub forget_claims_after: u64,
}

impl Default for KubernetesOptions {
    fn default() -> Self {
        let kubelet_root = PathBuf::from("/var/lib/kubelet");
        Self {
            kubeconfig: None,
            node: None,
            publish: Publish::default(),
            dra: true,
            kubelet_root,
            forget_claims_after: 600,
        }
    }
}

impl KubernetesOptions {
    /// The root directory of the kubelet that claims are prepared for. There are none of a node's capacity.
    pub fn kubelet(&self) -> Option<&Path> {
        (self.dra && self.publish != Publish::Node).then_some(&self.kubelet_root)
    }
}

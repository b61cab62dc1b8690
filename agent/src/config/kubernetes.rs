//! `[kubernetes]` in the configuration file.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// As what the uplinks' bandwidth is published.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct KubernetesOptions {
    /// The file that says where the API server is and who the agent is there.
    #[cfg_attr(test, schemars(extend("form" = "path", "otherwise" = "the pod's service account")))]
    pub kubeconfig: Option<PathBuf>,
    /// The node's name.
    #[cfg_attr(test, schemars(extend("otherwise" = "`$NODE_NAME`, else the host's name")))]
    pub node: Option<String>,
    /// As what the uplinks' bandwidth is published.
    pub publish: Publish,
    /// Whether claims are prepared for the node's kubelet; not with `publish = "node"`.
    pub dra: bool,
    /// The kubelet's root directory.
    #[cfg_attr(test, schemars(extend("form" = "path")))]
    pub kubelet_root: PathBuf,
    /// Seconds for which the API server has to say that a prepared claim is not its pod's any more, until it is forgotten; 0: never.
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

//! The name that a kubelet registers this node under.

use crate::capacity::slice::{NodeNameError, check_node_name};
use crate::config::KubernetesOptions;

/// The node's name by the environment (`NODE_NAME`, as pods are given it), else the host's name in lower case: kubelets
/// register a node under that unless they are told otherwise.
pub fn node_name() -> String {
    std::env::var("NODE_NAME").unwrap_or_else(|_| {
        let host = nix::unistd::gethostname().unwrap_or_default();
        host.to_string_lossy().to_lowercase()
    })
}

/// The configured name, else [`node_name`].
///
/// # Errors
/// [`NodeNameError`]: no node can have it.
pub(super) fn of_options(options: &KubernetesOptions) -> Result<String, NodeNameError> {
    let name = options.node.clone().unwrap_or_else(node_name);
    check_node_name(&name).map(|()| name)
}

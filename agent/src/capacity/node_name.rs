//! The name that a kubelet registers this node under.

/// The variable that has the name, where there is one.
pub const NODE_NAME: &str = "NODE_NAME";

/// The node's name by the environment ([`NODE_NAME`], as pods are given it), else the host's name in lower case: kubelets
/// register a node under that unless they are told otherwise.
pub fn node_name() -> String {
    std::env::var(NODE_NAME).unwrap_or_else(|_| {
        let host = nix::unistd::gethostname().unwrap_or_default();
        host.to_string_lossy().to_lowercase()
    })
}

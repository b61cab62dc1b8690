//! The name that the agent speaks to the API server by.

use crate::capacity::node_name;
use crate::capacity::slice::{NodeNameError, check_node_name};
use crate::config::KubernetesOptions;

/// The configured name, else [`node_name`].
///
/// # Errors
/// [`NodeNameError`]: no node can have it.
pub(super) fn of_options(options: &KubernetesOptions) -> Result<String, NodeNameError> {
    let name = options.node.clone().unwrap_or_else(node_name);
    check_node_name(&name).map(|()| name)
}

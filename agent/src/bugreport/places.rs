//! Where on the node everything is.

use std::path::PathBuf;

use crate::capacity::node_name as name_of_node;

/// Where everything is.
#[derive(Clone, Debug)]
pub struct Places {
    /// The agent's socket.
    pub socket: PathBuf,
    /// Its state directory.
    pub state_dir: PathBuf,
    /// Its directory of pins.
    pub bpffs: PathBuf,
    /// Its configuration file.
    pub config: PathBuf,
    /// The runtime's plugin directory.
    pub bin_dir: PathBuf,
    /// A file with its log; none: the journal.
    pub log: Option<PathBuf>,
    /// The node's name, where the configuration has one.
    pub node: Option<String>,
}

/// The node's name.
pub(super) fn node_name(places: &Places) -> String {
    places.node.clone().unwrap_or_else(name_of_node)
}

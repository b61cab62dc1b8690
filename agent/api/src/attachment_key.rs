//! Which attachment is meant.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The key of everything: one interface of one container in one network (CNI spec, "container id" and "ifname",
/// unique only together with the network's name).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct AttachmentKey {
    /// The network configuration's `name`.
    pub network: String,
    /// `CNI_CONTAINERID`.
    pub container: String,
    /// `CNI_IFNAME`, the interface's name inside the container.
    pub ifname: String,
}

impl fmt::Display for AttachmentKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.network, self.container, self.ifname)
    }
}

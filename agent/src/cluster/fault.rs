//! What is wrong with the cluster's network on this node: a line for a person, and a reason where it is an event of the node.

use std::fmt;

/// A fault of this node's own, in a word that scripts may rely on. What is wrong with other nodes is no event of this one: each of
/// thousands would write it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Reason {
    /// The API server could not be reached, or forbade, for a while that is over.
    ApiServerAway,
    /// The pods' bridge has an address that new pods, or pods of an earlier pod CIDR, are in trouble by.
    BridgeAddress,
    /// The network configuration cannot be written.
    ConfigurationNotWritten,
    /// Runtimes read another network configuration, as its name comes first.
    ConfigurationShadowed,
    /// The node has other addresses or pod CIDRs than before.
    NodeChanged,
    /// The pod CIDR of another node overlaps with this one's.
    PodCidrOverlaps,
    /// The node has no pod CIDR.
    PodCidrMissing,
    /// The node has a pod CIDR that cannot be one.
    PodCidrUnusable,
    /// The plugin, or its directory, is missing.
    PluginMissing,
}

/// Something that is wrong, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// For a person.
    pub(crate) text: String,
    /// None where it is no event of this node.
    pub(crate) reason: Option<Reason>,
}

impl Reason {
    /// The word.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::ApiServerAway => "APIServerAway",
            Self::BridgeAddress => "BridgeAddress",
            Self::ConfigurationNotWritten => "ConfigurationNotWritten",
            Self::ConfigurationShadowed => "ConfigurationShadowed",
            Self::NodeChanged => "NodeChanged",
            Self::PodCidrOverlaps => "PodCIDROverlaps",
            Self::PodCidrMissing => "PodCIDRMissing",
            Self::PodCidrUnusable => "PodCIDRUnusable",
            Self::PluginMissing => "PluginMissing",
        }
    }

    /// This node's own fault, in words.
    pub(crate) fn fault(self, text: String) -> Fault {
        Fault { text, reason: Some(self) }
    }
}

/// One that is no event.
impl From<String> for Fault {
    fn from(text: String) -> Self {
        Self { text, reason: None }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

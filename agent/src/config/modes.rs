//! Choices that the configuration has.

use std::fmt;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use shunt_agent_api::FilterMode;

/// How programs are attached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum AttachMode {
    /// tcx where the kernel has it, else clsact.
    #[default]
    Auto,
    /// tcx links only.
    Tcx,
    /// Filters of the clsact qdisc only.
    Clsact,
}

/// What admission does about a reservation that does not fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Admission {
    /// Nothing.
    #[default]
    Off,
    /// A warning.
    Warn,
    /// The ADD fails.
    Enforce,
}

/// Of whom metrics tell: how many series there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum MetricsLabels {
    /// Each interface of each container, and its pod.
    #[default]
    Pod,
    /// Sums over the containers of each namespace, those that are gone included.
    Namespace,
    /// One sum over all of the node's containers.
    Node,
}

impl MetricsLabels {
    /// Whether figures of containers are summed.
    pub fn are_sums(self) -> bool {
        self != Self::Pod
    }
}

/// Who begins masqueraded connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Masquerading {
    /// The programs, or the kernel where there are external filters for forwarded packets.
    #[default]
    Auto,
    /// The kernel.
    Kernel,
    /// The programs, even with external filters.
    Programs,
}

/// Whether others' rules for bridged packets are asked for flows between containers. A later one is stricter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Filters {
    /// Never.
    Bypass,
    /// Where somebody has any that may refuse or change something.
    #[default]
    Auto,
    /// Always.
    Heed,
}

impl fmt::Display for Filters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bypass => "bypass",
            Self::Auto => "auto",
            Self::Heed => "heed",
        })
    }
}

impl From<FilterMode> for Filters {
    fn from(mode: FilterMode) -> Self {
        match mode {
            FilterMode::Auto => Self::Auto,
            FilterMode::Heed => Self::Heed,
            FilterMode::Bypass => Self::Bypass,
        }
    }
}

/// Who hears what containers say to groups of their own bridge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Announcements {
    /// The node alone, if nobody else needs it.
    #[default]
    Suppress,
    /// Everybody, as on a kernel bridge.
    All,
}

/// Whether grace periods are expedited while programs are attached and detached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum GracePeriodMode {
    /// Unless processors are isolated, or `rcu_normal` is set.
    #[default]
    Auto,
    /// Never.
    Normal,
    /// Always.
    Expedite,
}

impl fmt::Display for GracePeriodMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::Normal => "normal",
            Self::Expedite => "expedite",
        })
    }
}

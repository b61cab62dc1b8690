//! What every configuration has, whatever its type.

use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{duration, via_agent};
use crate::result::Dns;

/// The keys that are not a personality's own (CNI specification, "Configuration format").
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct Network {
    /// The specification's version that the caller speaks.
    pub cni_version: String,
    /// The network's name.
    pub name: String,
    /// The plugin's name; it chooses the personality.
    pub r#type: String,
    /// Where shunt's agent listens.
    pub agent_socket: Option<PathBuf>,
    /// Whether the agent's CNI service does the calls: `true`, or its socket if that is not `/run/shunt/cni.sock`.
    #[cfg_attr(test, schemars(with = "Value", extend("type" = ["boolean", "string", "null"])))]
    #[serde(deserialize_with = "via_agent::deserialize")]
    pub via_agent: Option<PathBuf>,
    /// How long a delegated IPAM may take, as `30s`; without it as long as it likes.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    #[serde(deserialize_with = "duration::deserialize")]
    pub ipam_timeout: Option<Duration>,
    /// Whether the result's interfaces carry facts under `shunt.dev/…`.
    pub metadata: bool,
    /// The IPAM plugin and its keys.
    pub ipam: Option<Ipam>,
    /// What the container's resolver should be told, instead of what the IPAM says.
    pub dns: Dns,
    /// Which runtime arguments the plugin is to be sent.
    pub capabilities: Map<String, Value>,
    /// Arguments of the runtime for the declared capabilities.
    pub runtime_config: RuntimeConfig,
    /// Arguments of the orchestrator.
    pub args: Args,
    /// The result of the plugins before this one.
    pub prev_result: Option<Map<String, Value>>,
    /// At GC, the attachments that are to stay; absent means that nothing is to be done.
    #[serde(rename = "cni.dev/valid-attachments")]
    pub valid_attachments: Option<Vec<ValidAttachment>>,
    /// The same under the key of the specification's draft, which libcni still sends too.
    #[serde(rename = "cni.dev/attachments")]
    pub attachments: Option<Vec<ValidAttachment>>,
}

impl Network {
    /// At GC, the attachments that are to stay, if the runtime sent a list.
    pub fn valid_attachments(&self) -> Option<&[ValidAttachment]> {
        self.valid_attachments.as_deref().or(self.attachments.as_deref())
    }
}

/// The `ipam` object; its other keys are the IPAM plugin's.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Ipam {
    /// The IPAM plugin's name; empty means no IPAM.
    pub r#type: String,
}

/// `runtimeConfig`: values for the capabilities.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct RuntimeConfig {
    /// The address that the container's end is to have.
    pub mac: Option<String>,
    /// Addresses to ask the IPAM for, with or without a prefix length.
    pub ips: Vec<String>,
    /// Host ports that lead to the container.
    pub port_mappings: Vec<PortMapping>,
    /// The container's limits.
    pub bandwidth: Option<Bandwidth>,
    /// Ranges for the IPAM, as host-local's `ranges`.
    pub ip_ranges: Option<Value>,
}

/// One host port.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct PortMapping {
    /// The port on the node.
    pub host_port: u16,
    /// The port in the container.
    pub container_port: u16,
    /// `tcp`, `udp` or `sctp`.
    pub protocol: String,
    /// The node's address; empty or unspecified means any.
    #[serde(rename = "hostIP")]
    pub host_ip: String,
}

/// Rates in bits per second and bursts in bits; 0 means unlimited.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct Bandwidth {
    /// Towards the container.
    pub ingress_rate: u64,
    /// Towards the container.
    pub ingress_burst: u64,
    /// From the container.
    pub egress_rate: u64,
    /// From the container.
    pub egress_burst: u64,
    /// Subnets that are limited; all if none is named.
    pub shaped_subnets: Vec<String>,
    /// Subnets that are not limited.
    pub unshaped_subnets: Vec<String>,
}

/// `args`.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Args {
    /// `args.cni`, the conventions of the specification.
    pub cni: CniArgs,
}

/// `args.cni`.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct CniArgs {
    /// The address that the container's end is to have.
    pub mac: Option<String>,
    /// Addresses to ask the IPAM for.
    pub ips: Vec<String>,
}

/// One attachment that is to stay.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ValidAttachment {
    /// The container.
    #[serde(rename = "containerID")]
    pub container: String,
    /// Its interface.
    pub ifname: String,
}

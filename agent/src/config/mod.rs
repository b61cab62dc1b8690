//! The agent's configuration: a TOML file, and flags that override it.

mod api;
mod cluster;
mod contradictions;
mod cure;
mod error;
mod fault;
mod file;
mod filter_lease;
mod in_force;
mod key;
mod kubernetes;
mod mark_mask;
mod modes;
mod options;
mod origins;
#[cfg(test)]
mod reference;
mod resolve;
mod shown;
mod vxlan;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

pub use api::ApiOptions;
pub use cluster::{ClusterOptions, Routes};
pub use contradictions::contradictions;
pub use error::ConfigError;
pub use fault::Fault;
pub use file::{ConfigFile, DEFAULT_FILE};
pub use filter_lease::FilterLease;
pub use kubernetes::{KubernetesOptions, Publish};
pub use mark_mask::MarkMask;
pub use modes::{
    Admission, Announcements, AttachMode, Filters, GracePeriodMode, Masquerading, MetricsLabels,
};
pub use options::{MOST_FLOWS, Options};
pub use origins::Origins;
pub use vxlan::VxlanOptions;

use serde::Serialize;
use shunt_agent_api::BigTcp;

use crate::capacity::UplinkOptions;

/// The default state directory.
pub const DEFAULT_STATE_DIR: &str = "/var/lib/shunt";

/// The default directory for pins.
pub const DEFAULT_BPFFS: &str = "/sys/fs/bpf/shunt";

/// The agent's configuration. Its fields have the names of the file's keys.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Config {
    /// The Unix socket.
    #[serde(serialize_with = "shown::path")]
    pub socket: PathBuf,
    /// The group whose members may send queries; none: root only.
    pub group: Option<String>,
    /// The state directory.
    #[serde(serialize_with = "shown::path")]
    pub state_dir: PathBuf,
    /// The directory for pins.
    #[serde(serialize_with = "shown::path")]
    pub bpffs: PathBuf,
    /// The cgroup2 directory whose processes reach host ports; none: all there are.
    #[serde(serialize_with = "shown::optional_path")]
    pub cgroup: Option<PathBuf>,
    /// The maximum number of translated connections; none: by the machine's memory.
    pub max_flows: Option<u32>,
    /// The maximum number of them that one container has; none: a quarter of the room.
    pub max_flows_per_container: Option<u32>,
    /// The bits of packets' marks that are shunt's.
    pub mark_mask: MarkMask,
    /// How programs are attached.
    pub attach: AttachMode,
    /// Who begins masqueraded connections.
    pub masquerade: Masquerading,
    /// Who hears what containers say to groups of their own bridge.
    pub announcements: Announcements,
    /// Whether others' rules are asked for flows between containers.
    pub filters: Filters,
    /// How long what they have let through is not asked for again.
    pub filter_lease: FilterLease,
    /// Whether others' rules are asked for host ports, too.
    pub filter_host_ports: bool,
    /// How large the packets of containers' veths are.
    pub big_tcp: BigTcp,
    /// Whether grace periods are expedited while programs are attached and detached.
    pub grace_periods: GracePeriodMode,
    /// What admission does.
    pub admission: Admission,
    /// Declared uplinks by interface name.
    pub uplinks: BTreeMap<String, UplinkOptions>,
    /// Where metrics are served, if they are.
    pub metrics: Option<SocketAddr>,
    /// Of whom metrics tell.
    pub metrics_labels: MetricsLabels,
    /// How the uplinks' bandwidth is published to Kubernetes, if it is.
    pub kubernetes: Option<KubernetesOptions>,
    /// How the agent is the cluster's network, if it is.
    #[serde(serialize_with = "shown::cluster")]
    pub cluster: Option<ClusterOptions>,
    /// How CNI is served, if it is.
    pub api: Option<ApiOptions>,
    /// Whether changes by others are repaired.
    #[serde(skip)]
    pub repairs: bool,
    /// Whether the programs of host ports are loaded with the first host port.
    #[serde(skip)]
    pub late_programs: bool,
    /// Requested options that this build lacks, and those that contradict others.
    #[serde(skip)]
    pub warnings: Vec<String>,
    /// Where the values come from.
    #[serde(skip)]
    pub origins: Origins,
}

impl From<Options> for Config {
    fn from(options: Options) -> Self {
        let cluster = options.cluster.filter(|cluster| cluster.enabled);
        let not_built = [("kubernetes", options.kubernetes.is_some()), ("cluster", cluster.is_some())];
        let not_built = not_built.map(|(option, asked)| (option, asked && !cfg!(feature = "kubernetes")));
        Self {
            socket: options.socket.unwrap_or_else(|| shunt_agent_api::DEFAULT_SOCKET.into()),
            group: options.group,
            state_dir: options.state_dir.unwrap_or_else(|| DEFAULT_STATE_DIR.into()),
            bpffs: options.bpffs.unwrap_or_else(|| DEFAULT_BPFFS.into()),
            cgroup: options.cgroup,
            max_flows: options.max_flows,
            max_flows_per_container: options.max_flows_per_container,
            mark_mask: options.mark_mask.unwrap_or_default(),
            attach: options.attach.unwrap_or_default(),
            masquerade: options.masquerade.unwrap_or_default(),
            announcements: options.announcements.unwrap_or_default(),
            filters: options.filters.unwrap_or_default(),
            filter_lease: options.filter_lease.unwrap_or_default(),
            filter_host_ports: options.filter_host_ports.unwrap_or(true),
            big_tcp: options.big_tcp.unwrap_or_default(),
            grace_periods: options.grace_periods.unwrap_or_default(),
            admission: options.admission.unwrap_or_default(),
            uplinks: options.uplinks,
            metrics: options.metrics,
            metrics_labels: options.metrics_labels.unwrap_or_default(),
            kubernetes: options.kubernetes,
            cluster,
            api: options.api,
            repairs: true,
            late_programs: false,
            warnings: not_built
                .into_iter()
                .filter(|(_, asked)| *asked)
                .map(|(option, _)| {
                    format!("the option {option} is not built in this version and does nothing")
                })
                .collect(),
            origins: Origins::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use shunt_dataplane::abi::{DEFAULT_MARK_MASK, Marks};

    use super::*;

    #[test]
    fn flags_win_over_the_file_and_the_file_over_the_defaults() {
        let file: Options =
            toml::from_str("socket = '/file'\nstate_dir = '/state'\nattach = 'clsact'").unwrap();
        let flags = Options { socket: Some("/flag".into()), ..Options::default() };
        let config = Config::from(flags.or(file));
        assert_eq!(config.socket, Path::new("/flag"));
        assert_eq!(config.state_dir, Path::new("/state"));
        assert_eq!(config.bpffs, Path::new(DEFAULT_BPFFS));
        assert_eq!(config.attach, AttachMode::Clsact);
    }

    #[test]
    fn a_flag_that_names_an_uplink_leaves_what_the_file_says_of_it() {
        let file: Options = toml::from_str("[uplinks.eth1]\negress = '1G'").unwrap();
        let named = ["eth1", "eth2"].map(|name| (name.to_owned(), UplinkOptions::default()));
        let flags = Options { uplinks: named.into(), ..Options::default() };
        let uplinks = Config::from(flags.or(file)).uplinks;
        assert_eq!(uplinks["eth1"].egress, Some(crate::capacity::Quantity(1_000_000_000)));
        assert_eq!(uplinks["eth2"], UplinkOptions::default());
    }

    #[test]
    fn the_mask_of_marks_has_three_bits_at_least() {
        let of = |text: &str| toml::from_str::<Options>(text).map(|options| Config::from(options).mark_mask);
        assert_eq!(of("").unwrap().marks(), Marks::of(DEFAULT_MARK_MASK).unwrap());
        assert_eq!(of("mark_mask = 0x0e00_0000").unwrap().marks(), Marks::of(0x0e00_0000).unwrap());
        assert!(of("mark_mask = 0x3").unwrap_err().to_string().contains("three bits"));
    }

    #[test]
    fn the_size_of_packets_is_a_word_or_bytes_within_bounds() {
        let of = |text: &str| toml::from_str::<Options>(text).map(|options| Config::from(options).big_tcp);
        assert_eq!(of("").unwrap(), BigTcp::Off);
        assert_eq!(of("big_tcp = 'auto'").unwrap(), BigTcp::Auto);
        assert_eq!(of("bigTcp = 131072").unwrap(), BigTcp::Bytes(131_072));
        assert!(of("big_tcp = 1500").unwrap_err().to_string().contains("not between 65536 and 524280"));
        assert!(of("big_tcp = 'on'").unwrap_err().to_string().contains("none of auto, off"));
    }

    #[test]
    fn what_this_version_does_not_do_is_said() {
        let options: Options = toml::from_str(
            "metrics = '127.0.0.1:9000'\n[uplinks.eth1]\negress = '1G'\nxdp = 'native'\n[kubernetes]",
        )
        .unwrap();
        let config = Config::from(options);
        assert!(config.uplinks.contains_key("eth1"));
        assert_eq!(config.metrics, Some(([127, 0, 0, 1], 9000).into()));
        let not_built = usize::from(!cfg!(feature = "kubernetes"));
        assert_eq!(config.warnings.len(), not_built, "{:?}", config.warnings);
    }
}

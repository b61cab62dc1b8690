//! Options of the file and of the flags.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::{
    Admission, AttachMode, ClusterOptions, ConfigError, FilterLease, Filters, GracePeriodMode,
    KubernetesOptions, MarkMask, Masquerading, MetricsLabels,
};
use crate::capacity::UplinkOptions;

/// The file that is read unless another one is named; it may be absent.
pub const DEFAULT_FILE: &str = "/etc/shunt/agent.toml";

/// Options of the file and of the flags; absent means the default.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// The Unix socket.
    pub socket: Option<PathBuf>,
    /// The group whose members may send queries but no changes: its name or number.
    pub group: Option<String>,
    /// The state directory.
    pub state_dir: Option<PathBuf>,
    /// The directory for pins, directly below a BPF file system's mount point.
    pub bpffs: Option<PathBuf>,
    /// The cgroup2 directory that host programs hook connections at.
    pub cgroup: Option<PathBuf>,
    /// The maximum number of translated connections.
    pub max_flows: Option<u32>,
    /// The maximum number of assured ones of them that one container has; at least one.
    pub max_flows_per_container: Option<u32>,
    /// The bits of packets' marks that are shunt's.
    pub mark_mask: Option<MarkMask>,
    /// Where metrics are served, as `ADDR:PORT`.
    pub metrics: Option<SocketAddr>,
    /// Of whom metrics tell.
    pub metrics_labels: Option<MetricsLabels>,
    /// What admission does.
    pub admission: Option<Admission>,
    /// How programs are attached.
    pub attach: Option<AttachMode>,
    /// Who begins masqueraded connections.
    pub masquerade: Option<Masquerading>,
    /// Whether others' rules are asked for flows between containers.
    pub filters: Option<Filters>,
    /// How long what they have let through is not asked for again.
    pub filter_lease: Option<FilterLease>,
    /// Whether grace periods are expedited while programs are attached and detached.
    pub grace_periods: Option<GracePeriodMode>,
    /// Declared uplinks by interface name.
    #[serde(default)]
    pub uplinks: BTreeMap<String, UplinkOptions>,
    /// How the uplinks' bandwidth is published to Kubernetes, if it is.
    pub kubernetes: Option<KubernetesOptions>,
    /// How the agent is the cluster's network, if it is.
    pub cluster: Option<ClusterOptions>,
}

impl Options {
    /// Reads a TOML file.
    ///
    /// # Errors
    /// [`ConfigError`], with the line of an unknown key.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let text = fs::read_to_string(path)
            .map_err(|source| ConfigError::Unreadable { path: path.to_path_buf(), source })?;
        toml::from_str(&text)
            .map_err(|source| ConfigError::Invalid { path: path.to_path_buf(), source: Box::new(source) })
    }

    /// Reads [`DEFAULT_FILE`]; every option is absent without it.
    ///
    /// # Errors
    /// As [`Options::read`].
    pub fn read_default() -> Result<Self, ConfigError> {
        match Self::read(Path::new(DEFAULT_FILE)) {
            Err(ConfigError::Unreadable { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                Ok(Self::default())
            }
            read => read,
        }
    }

    /// Fills absent options from `fallback`.
    pub fn or(self, fallback: Self) -> Self {
        Self {
            socket: self.socket.or(fallback.socket),
            group: self.group.or(fallback.group),
            state_dir: self.state_dir.or(fallback.state_dir),
            bpffs: self.bpffs.or(fallback.bpffs),
            cgroup: self.cgroup.or(fallback.cgroup),
            max_flows: self.max_flows.or(fallback.max_flows),
            max_flows_per_container: self.max_flows_per_container.or(fallback.max_flows_per_container),
            mark_mask: self.mark_mask.or(fallback.mark_mask),
            metrics: self.metrics.or(fallback.metrics),
            metrics_labels: self.metrics_labels.or(fallback.metrics_labels),
            admission: self.admission.or(fallback.admission),
            attach: self.attach.or(fallback.attach),
            masquerade: self.masquerade.or(fallback.masquerade),
            filters: self.filters.or(fallback.filters),
            filter_lease: self.filter_lease.or(fallback.filter_lease),
            grace_periods: self.grace_periods.or(fallback.grace_periods),
            // A flag only names an uplink; the file has its options.
            uplinks: self.uplinks.into_iter().chain(fallback.uplinks).collect(),
            kubernetes: self.kubernetes.or(fallback.kubernetes),
            cluster: self.cluster.or(fallback.cluster),
        }
    }
}

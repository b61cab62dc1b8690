//! Options of the file and of the flags.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use shunt_agent_api::BigTcp;

use super::{
    Admission, Announcements, ApiOptions, AttachMode, ClusterOptions, FilterLease, Filters, GracePeriodMode,
    KubernetesOptions, MarkMask, Masquerading, MetricsLabels, shown,
};
use crate::capacity::UplinkOptions;

/// Connections that there is room for at most.
pub const MOST_FLOWS: u32 = 524_288;

/// Options of the file and of the flags; absent means the default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// Where the agent listens.
    #[cfg_attr(test, schemars(extend("form" = "path", "flag" = "--socket")))]
    #[serde(serialize_with = "shown::optional_path")]
    pub socket: Option<PathBuf>,
    /// The group, by name or number, whose members may ask and change nothing. The agent must be a member of it itself.
    #[cfg_attr(test, schemars(extend("flag" = "--group", "otherwise" = "root only")))]
    pub group: Option<String>,
    /// Where attachments are remembered, one file each.
    #[cfg_attr(test, schemars(extend("form" = "path", "flag" = "--state-dir")))]
    #[serde(serialize_with = "shown::optional_path")]
    pub state_dir: Option<PathBuf>,
    /// Where maps and links are pinned. The parent must be a BPF file system, or an empty directory, on which one is mounted.
    #[cfg_attr(test, schemars(extend("form" = "path", "flag" = "--bpffs")))]
    #[serde(serialize_with = "shown::optional_path")]
    pub bpffs: Option<PathBuf>,
    /// The cgroup2 directory whose processes reach host ports from the node itself.
    #[cfg_attr(
        test,
        schemars(extend("form" = "path", "flag" = "--cgroup", "otherwise" = "the root of cgroup2"))
    )]
    #[serde(serialize_with = "shown::optional_path")]
    pub cgroup: Option<PathBuf>,
    /// How many translated connections there is room for.
    #[cfg_attr(
        test,
        schemars(
            range(min = 1, max = MOST_FLOWS),
            extend("flag" = "--max-flows", "otherwise" = "by the memory")
        )
    )]
    pub max_flows: Option<u32>,
    /// How many assured connections, which both sides have sent in, one container may have.
    #[cfg_attr(
        test,
        schemars(
            range(min = 1, max = MOST_FLOWS),
            extend(
                "flag" = "--max-flows-per-container",
                "otherwise" = "a quarter of the room",
                "see" = "dataplane/nat.md#shares"
            )
        )
    )]
    pub max_flows_per_container: Option<u32>,
    /// The bits of packets' marks that are shunt's: the lowest three of it. All others are left alone.
    #[cfg_attr(test, schemars(with = "u32", extend("form" = "integer with three bits or more")))]
    pub mark_mask: Option<MarkMask>,
    /// Where `/metrics`, `/livez`, `/readyz` and `/healthz` are served, without authentication.
    #[cfg_attr(
        test,
        schemars(with = "String", extend("form" = "`ADDR:PORT`", "flag" = "--metrics", "otherwise" = "off"))
    )]
    pub metrics: Option<SocketAddr>,
    /// Of whom metrics tell.
    #[cfg_attr(test, schemars(extend("see" = "#metrics-of-many-pods")))]
    pub metrics_labels: Option<MetricsLabels>,
    /// What is done about an attachment that asks for more bandwidth than is left.
    #[cfg_attr(test, schemars(extend("flag" = "--admission")))]
    pub admission: Option<Admission>,
    /// How programs are attached; for tests.
    #[cfg_attr(test, schemars(extend("flag" = "--attach")))]
    pub attach: Option<AttachMode>,
    /// Who begins masqueraded connections.
    pub masquerade: Option<Masquerading>,
    /// Who hears what a container announces to all, its reports of groups and its questions for routers, on a bridge without other ports.
    #[cfg_attr(test, schemars(extend("see" = "dataplane/bridging.md#what-is-suppressed")))]
    pub announcements: Option<Announcements>,
    /// Whether others' rules are asked for flows between containers, host ports and masqueraded connections that the programs carry.
    #[cfg_attr(test, schemars(extend("see" = "dataplane/filters.md")))]
    pub filters: Option<Filters>,
    /// How long a flow that others' rules have let through is not asked for again.
    #[cfg_attr(
        test,
        schemars(with = "String", extend("form" = "duration, `50ms` to `10s`", "see" = "dataplane/filters.md"))
    )]
    pub filter_lease: Option<FilterLease>,
    /// Whether others' rules are asked for host ports, too, as `filters` says: the kernel opens their connections then.
    #[cfg_attr(test, schemars(extend("see" = "dataplane/filters.md#host-ports")))]
    pub filter_host_ports: Option<bool>,
    /// How large the packets of containers' veths are, of networks that do not say it: `auto` has those of IPv4 as large as every way out of the
    /// node takes them, `off` 64 KiB.
    #[cfg_attr(
        test,
        schemars(
            with = "String",
            extend("form" = "`auto`, `off`, or bytes, 65536 to 524280", "see" = "dataplane/big-tcp.md")
        )
    )]
    #[serde(alias = "bigTcp")]
    pub big_tcp: Option<BigTcp>,
    /// Whether grace periods are expedited while programs are attached and detached.
    #[cfg_attr(test, schemars(extend("see" = "#grace-periods")))]
    pub grace_periods: Option<GracePeriodMode>,
    /// Declares a way out of the node.
    #[cfg_attr(test, schemars(extend("flag" = "--uplink NAME")))]
    #[serde(default)]
    pub uplinks: BTreeMap<String, UplinkOptions>,
    /// Publishes the uplinks' bandwidth, and prepares claims of it.
    #[cfg_attr(test, schemars(extend("see" = "kubernetes.md")))]
    pub kubernetes: Option<KubernetesOptions>,
    /// The agent is the cluster's network.
    #[cfg_attr(test, schemars(extend("see" = "kubernetes.md#the-clusters-network")))]
    pub cluster: Option<ClusterOptions>,
    /// The agent serves CNI by gRPC.
    #[cfg_attr(test, schemars(extend("see" = "api.md#cni-as-a-service")))]
    pub api: Option<ApiOptions>,
}

impl Options {
    /// The runtime's plugin directory, if the agent is the cluster's network.
    pub fn cluster_bin_dir(&self) -> Option<PathBuf> {
        self.cluster.as_ref().filter(|cluster| cluster.enabled).map(|cluster| cluster.cni_bin_dir.clone())
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
            announcements: self.announcements.or(fallback.announcements),
            filters: self.filters.or(fallback.filters),
            filter_lease: self.filter_lease.or(fallback.filter_lease),
            filter_host_ports: self.filter_host_ports.or(fallback.filter_host_ports),
            big_tcp: self.big_tcp.or(fallback.big_tcp),
            grace_periods: self.grace_periods.or(fallback.grace_periods),
            // A flag only names an uplink; the file has its options.
            uplinks: self.uplinks.into_iter().chain(fallback.uplinks).collect(),
            kubernetes: self.kubernetes.or(fallback.kubernetes),
            cluster: self.cluster.or(fallback.cluster),
            api: self.api.or(fallback.api),
        }
    }
}

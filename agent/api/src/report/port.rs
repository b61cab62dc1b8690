//! What the agent reports about ports, stations and drops; the field names are the contract of `--json`.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

/// `shunt-agent ports`, one attachment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortReport {
    /// Network name.
    pub network: String,
    /// Container id.
    pub container: String,
    /// Interface name in the container.
    pub ifname: String,
    /// The host end's name.
    pub host_ifname: String,
    /// The host end's ifindex.
    pub host_ifindex: u32,
    /// The container's MAC address.
    pub mac: String,
    /// The container's addresses.
    pub ips: Vec<IpAddr>,
    /// VLAN membership.
    pub vlan: VlanReport,
    /// Names of what restricts the port (`vlan`, `isolated`, `macspoofchk` …).
    pub restrictions: Vec<String>,
    /// Configured rates.
    pub limits: Limits,
    /// Why its frames take the kernel's way, where others have put filters on the port or set something on it that the fast path cannot
    /// heed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kernels_way: Vec<String>,
    /// The pod's namespace, as far as the runtime says it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// The pod's name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub pod: String,
    /// The pod's UID.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub pod_uid: String,
    /// What the container sent.
    pub from: Traffic,
    /// What the container was sent.
    pub to: Traffic,
}

/// A port's VLANs; 0 untagged means a port that knows no VLAN.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VlanReport {
    /// The VLAN of untagged frames.
    pub untagged: u16,
    /// The VLANs that are carried tagged.
    pub tagged: Vec<u16>,
}

/// Rates in bits per second; absent means unlimited.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Towards the container.
    pub ingress: Option<u64>,
    /// From the container.
    pub egress: Option<u64>,
}

/// Counters of one direction of a port. `packets` and `bytes` are the sums of what was forwarded, by either path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traffic {
    /// Packets on both paths, as the hook saw them (a GSO packet is one).
    pub packets: u64,
    /// Their bytes, Ethernet header included.
    pub bytes: u64,
    /// Packets that the fast path delivered.
    pub fast: u64,
    /// Packets left to the kernel.
    pub kernel: u64,
    /// Packets dropped by a program.
    pub dropped: u64,
}

/// `shunt-agent fdb`, one station.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FdbEntry {
    /// The bridge's name.
    pub bridge: String,
    /// VLAN id; 0 on a bridge without VLANs.
    pub vid: u16,
    /// The station's MAC address.
    pub mac: String,
    /// The interface behind which it is.
    pub port: String,
    /// How it came to be known.
    pub kind: FdbKind,
    /// Seconds since it was last heard; 0 for static entries.
    pub age_seconds: u64,
}

/// How a station came to be known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FdbKind {
    /// An attached container, or the bridge itself.
    Static,
    /// Heard behind an uplink.
    Learned,
}

/// `shunt-agent drops`, one reason on one port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DropReport {
    /// The stage that dropped.
    pub stage: String,
    /// Why.
    pub reason: String,
    /// The interface that the packet came from or would have gone to.
    pub port: String,
    /// Packets.
    pub packets: u64,
    /// Bytes, Ethernet header included.
    pub bytes: u64,
}

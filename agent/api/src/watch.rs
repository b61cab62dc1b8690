//! What becomes of single packets, for whoever watches; the field names of [`PacketReport`] are the contract of `shunt-agent drops --watch`.

use serde::{Deserialize, Serialize};

/// Which packets are told, and how much of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchRequest {
    /// Those that are dropped.
    #[serde(default)]
    pub dropped: bool,
    /// Those that the fast path delivers.
    #[serde(default)]
    pub delivered: bool,
    /// Those that are left to the kernel.
    #[serde(default)]
    pub passed: bool,
    /// Bytes of each packet.
    pub snap: u32,
    /// Packets a second, of each reason and CPU; those beyond it are counted and left out.
    pub rate: u32,
    /// Only packets from or to these: a host end's name, a container's id, or a pod as `NAMESPACE/NAME`. None means all.
    #[serde(default)]
    pub ports: Vec<String>,
}

/// Packets that were told since the last time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchReport {
    /// The packets, in order.
    pub packets: Vec<PacketReport>,
    /// Packets since the last time that were over the rate, of all watchers' ports.
    pub left_out: u64,
    /// Packets since the last time for which there was no room: the programs' buffer was full, or this watcher was too slow.
    pub lost: u64,
    /// The words of [`WatchRequest::ports`] that no interface is known by: told where that has changed, and first where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unmatched: Option<Vec<String>>,
}

/// One packet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PacketReport {
    /// When, in nanoseconds since 1970 (UTC).
    pub time: u64,
    /// The interface whose program has judged it.
    pub ifname: String,
    /// Its index.
    pub ifindex: u32,
    /// The attachment's network; empty where the interface is no container's.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub network: String,
    /// The attachment's container.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub container: String,
    /// The pod's namespace, as far as the runtime says it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// The pod's name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub pod: String,
    /// The program, which says the direction: `from_container`, `to_container` and so on.
    pub program: String,
    /// `drop`, `pass`, or how it is delivered: `peer`, `port`, `neighbor`, `flood`, `wire`, `into`, `onward`. `back`: it is dropped, and its
    /// sender gets an ICMP error.
    pub verdict: String,
    /// The interface that it is delivered to; empty for none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub to: String,
    /// The stage that has dropped or passed it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stage: String,
    /// Why.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Bytes of the packet.
    pub length: u32,
    /// Whether its bytes begin with the IP header: it has no Ethernet header.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub bare: bool,
    /// Its first bytes, a VLAN tag included, in base64.
    pub data: String,
}

//! What the agent reports about itself; the field names are the contract of `--json`.

use std::fmt;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::Protocol;

/// `shunt-agent status`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentStatus {
    /// The agent's version.
    pub version: String,
    /// `ABI_VERSION` of its maps.
    pub abi: u32,
    /// Whether an ADD would work.
    pub healthy: bool,
    /// Why not; empty when healthy.
    pub reasons: Vec<String>,
    /// What an operator should know although it works.
    pub warnings: Vec<String>,
    /// How many attachments there are.
    pub attachments: usize,
    /// How often something was repaired that somebody else had altered, since the agent's start.
    #[serde(default)]
    pub repairs: u64,
    /// How many entries of translated connections, two for each, have made room for others since then.
    #[serde(default)]
    pub flow_evictions: u64,
    /// Whether the agent expedites the kernel's grace periods; none from an agent of an older version.
    #[serde(default)]
    pub grace_periods: Option<GracePeriodReport>,
    /// Every attached program.
    pub programs: Vec<ProgramReport>,
    /// The declared uplinks' names.
    pub uplinks: Vec<String>,
    /// The interfaces that are bridges' uplinks.
    #[serde(default)]
    pub bridge_uplinks: Vec<BridgeUplinkReport>,
    /// The uplinks of which something was moved to their bridges.
    #[serde(default)]
    pub relocations: Vec<RelocationReport>,
    /// The node's own interfaces in VLANs of bridges.
    #[serde(default)]
    pub vlan_gateways: Vec<VlanGatewayReport>,
}

/// How long grace periods are while programs are attached and detached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GracePeriodReport {
    /// `grace_periods` in the configuration: `auto`, `normal` or `expedite`.
    pub mode: String,
    /// Whether they are expedited.
    pub expedited: bool,
    /// Why, or why not.
    pub reason: String,
}

/// The node's interface in one VLAN of a bridge, by which it is the gateway there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VlanGatewayReport {
    /// The interface's name.
    pub name: String,
    /// The bridge's name.
    pub bridge: String,
    /// The VLAN.
    pub vlan: u16,
    /// Its MAC address.
    pub mac: String,
    /// The addresses that attachments want it to have, each as `10.1.0.1/16`.
    pub addresses: Vec<String>,
    /// What the node sent by it.
    pub from: Traffic,
    /// What came to the node by it.
    pub to: Traffic,
}

/// The node's own addresses on a bridge that were its uplink's, and go back to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RelocationReport {
    /// The uplink's name.
    pub uplink: String,
    /// The bridge's name.
    pub bridge: String,
    /// The addresses, each as `192.0.2.9/24`.
    pub addresses: Vec<String>,
    /// Whether all of it is on the bridge, and none on its way.
    pub complete: bool,
}

/// An interface of the node that is a bridge's uplink.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BridgeUplinkReport {
    /// The interface's name.
    pub name: String,
    /// The bridge's name.
    pub bridge: String,
    /// Whether its bridge keeps it from forwarding, as a spanning tree does.
    #[serde(default)]
    pub blocked: bool,
    /// Stations that are known beyond it.
    pub stations: u64,
    /// How often a station was not learned, for want of room.
    pub refused: u64,
    /// How often a station has moved here from another uplink.
    pub moved: u64,
    /// What came in by it.
    pub from: Traffic,
    /// What went out by it.
    pub to: Traffic,
}

/// `shunt-agent check`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditReport {
    /// Whether everything is as it should be.
    pub consistent: bool,
    /// What is not, each a line for a person.
    pub findings: Vec<String>,
}

/// One program on one interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramReport {
    /// The program's name, from the packet's point of view: `from_container`, `to_container`, `from_host`.
    pub name: String,
    /// The interface that it is attached to.
    pub ifname: String,
    /// How it is attached.
    pub mode: ProgramMode,
    /// The kernel's program id.
    pub id: u32,
}

/// How a program is attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProgramMode {
    /// A pinned tcx link (Linux 6.6).
    Tcx,
    /// A filter on a clsact qdisc.
    Clsact,
    /// An XDP link.
    Xdp,
    /// A cgroup link.
    Cgroup,
}

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

/// The protocols that are translated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FlowProtocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// SCTP.
    Sctp,
    /// Echoes of ICMP for IPv4.
    Icmp,
    /// The same of ICMP for IPv6.
    Icmpv6,
}

impl fmt::Display for FlowProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::Sctp => "sctp",
            Self::Icmp => "icmp",
            Self::Icmpv6 => "icmpv6",
        })
    }
}

/// `shunt-agent flows`: one translated connection, as its opener's packets come in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowReport {
    /// Its protocol.
    pub proto: FlowProtocol,
    /// From whom.
    pub src: IpAddr,
    /// From which port; of an echo, its identifier.
    pub sport: u16,
    /// To whom: by a host port, to the node.
    pub dst: IpAddr,
    /// To which port; of an echo, 0.
    pub dport: u16,
    /// The same, as the receiver sees it.
    pub translated: FlowEnds,
    /// `opening`, `established`, `closing`, `closed` or `reset`.
    pub state: String,
    /// When it is forgotten, if nothing comes any more.
    pub expires_seconds: u64,
    /// How many packets of both directions were translated.
    pub packets: u64,
    /// How many bytes they had, Ethernet headers included.
    pub bytes: u64,
}

/// Both ends of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowEnds {
    /// From whom.
    pub src: IpAddr,
    /// From which port.
    pub sport: u16,
    /// To whom.
    pub dst: IpAddr,
    /// To which port.
    pub dport: u16,
}

/// `shunt-agent mappings`: one port of the node that leads to a container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MappingReport {
    /// Its protocol.
    pub proto: Protocol,
    /// The node's address; none: any.
    pub host_ip: Option<IpAddr>,
    /// The node's port.
    pub host_port: u16,
    /// The container's network.
    pub network: String,
    /// The container.
    pub container: String,
    /// Its interface.
    pub ifname: String,
    /// The container's addresses that it leads to, one of each family at most.
    pub container_ips: Vec<IpAddr>,
    /// The container's port.
    pub container_port: u16,
    /// How many connections there are.
    pub connections: u64,
    /// What the container answered.
    #[serde(default)]
    pub from: Volume,
    /// What came to the container.
    #[serde(default)]
    pub to: Volume,
}

/// One direction of what came by a host port, connections that are over included: since the agent's start, and before it of those
/// that were there then. What a connection had that made room for another in a full table is lost: the figures then wait for
/// as much to come, and never fall. What the node's own sockets send is led and not translated, and is not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Volume {
    /// How many packets were translated (a GSO packet is one).
    pub packets: u64,
    /// How many bytes they had, Ethernet headers included.
    pub bytes: u64,
}

//! What the agent reports about itself; the field names are the contract of `--json`.

use serde::{Deserialize, Serialize};

use super::Traffic;

/// `shunt-agent status`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentStatus {
    /// The agent's version.
    pub version: String,
    /// `ABI_VERSION` of its maps.
    pub abi: u32,
    /// Whether nothing is wrong, with the agent or with any attachment.
    pub healthy: bool,
    /// What is wrong; empty when healthy.
    pub reasons: Vec<String>,
    /// Why every ADD would fail; empty when the agent is ready.
    #[serde(default)]
    pub obstacles: Vec<String>,
    /// Why an ADD that asks for bandwidth would fail.
    #[serde(default)]
    pub sold_out: Vec<String>,
    /// What an operator should know although it works.
    pub warnings: Vec<String>,
    /// How many attachments there are.
    pub attachments: usize,
    /// How often something was repaired that somebody else had altered, since the agent's start.
    #[serde(default)]
    pub repairs: u64,
    /// How many things cannot be repaired, and are tried again.
    #[serde(default)]
    pub unrepaired: u64,
    /// How much of the room for translated connections is in use, in percent.
    #[serde(default)]
    pub flows_in_use: u32,
    /// How many entries of translated connections, two for each, have made room for others since the agent's start.
    #[serde(default)]
    pub flow_evictions: u64,
    /// Whether the agent expedites the kernel's grace periods; none from an agent of an older version.
    #[serde(default)]
    pub grace_periods: Option<GracePeriodReport>,
    /// Whether others' rules are asked for flows between containers; none from an agent of an older version.
    #[serde(default)]
    pub filters: Option<Box<FilterReport>>,
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

/// Whether others' rules are asked for flows between containers, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilterReport {
    /// `auto`, `heed` or `bypass`: the strictest of any bridge.
    pub mode: String,
    /// Whether they are, at any bridge.
    pub heeded: bool,
    /// Who has rules that may refuse or change something.
    pub by: Vec<String>,
    /// The rule that has all flows stay with the kernel.
    pub kept: Option<String>,
    /// Whether the kernel opens host ports, of any container, so that they meet others' rules.
    #[serde(default)]
    pub opens: bool,
    /// Who has rules that may refuse or change something of what comes to host ports.
    #[serde(default)]
    pub opens_by: Vec<String>,
    /// Why the kernel begins masqueraded connections: who has rules, or the configuration. None where the programs do, or nothing is masqueraded.
    #[serde(default)]
    pub masquerades_by: Option<String>,
    /// Whether the programs carry those that last, of any container.
    #[serde(default)]
    pub carries: bool,
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
    /// What is as it should be, and what an operator should know of.
    #[serde(default)]
    pub warnings: Vec<String>,
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

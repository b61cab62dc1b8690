//! The keys of `shunt` and `bridge`: those of the reference bridge plugin, and shunt's own.

use serde::Deserialize;
use serde_json::Value;

/// See the reference plugin's documentation; shunt's own keys follow below.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct Bridge {
    /// The bridge's name.
    pub bridge: String,
    /// Whether the bridge gets the gateway's address.
    pub is_gateway: bool,
    /// As `isGateway`, and the container's default route goes there.
    pub is_default_gateway: bool,
    /// Whether another address of the bridge is replaced.
    pub force_address: bool,
    /// Whether what leaves the network is masqueraded.
    pub ip_masq: bool,
    /// `iptables` or `nftables`; shunt uses neither.
    pub ip_masq_backend: Option<String>,
    /// With `ipMasq`: destinations, as `10.2.0.0/16`, that see the container's own address; at most 256.
    #[serde(rename = "nonMasqueradeCIDRs")]
    pub non_masquerade_cidrs: Vec<String>,
    /// MTU of the bridge and of both ends of the veth; 0 leaves the kernel's default.
    pub mtu: u32,
    /// Whether a frame may leave by the port that it came from.
    pub hairpin_mode: bool,
    /// Whether the bridge is promiscuous.
    pub promisc_mode: bool,
    /// The VLAN of the container's untagged frames; 0 means none.
    #[cfg_attr(test, schemars(range(max = 4094)))]
    pub vlan: u16,
    /// The VLANs that the container sends and receives tagged.
    pub vlan_trunk: Vec<VlanRange>,
    /// Whether the port stays in the bridge's default VLAN too.
    pub preserve_default_vlan: bool,
    /// Whether frames with another source address than the container's are dropped.
    pub macspoofchk: bool,
    /// Whether duplicate address detection runs in the container.
    pub enabledad: bool,
    /// Whether the container's end stays down.
    pub disable_container_interface: bool,
    /// Whether the container reaches only ports that are not isolated.
    pub port_isolation: bool,
    /// `bridge` or `vlan`.
    pub mode: Option<String>,
    /// Whether a repeated ADD of the same attachment succeeds.
    pub update_existing: bool,
    /// VLAN membership; disables `vlan`, `vlanTrunk` and `preserveDefaultVlan`.
    pub vlans: Option<Value>,
    /// An interface that becomes a port of the bridge.
    pub uplink: Option<String>,
    /// Whether the node's own addresses on the uplink, with its routes, move to the bridge for as long as the uplink is its port.
    pub uplink_move_address: bool,
    /// Whether packets with another source than the container's addresses are dropped.
    pub ipspoofchk: bool,
    /// Whether the container may send router advertisements, redirects and DHCP servers' messages despite `ipspoofchk`.
    pub trusted: bool,
    /// `open`, `same-bridge` or `isolated`.
    pub ingress_policy: Option<String>,
    /// Whether others' rules are asked for flows of the bridge, whatever the agent's file says: `auto`, `heed` or `bypass`.
    pub filters: Option<String>,
    /// How large the packets of both ends of the veth are, whatever the agent's file says: `auto`, `off`, or bytes, 65536 to 524280.
    pub big_tcp: Option<Value>,
    /// Limits of broadcast and multicast, in packets per second.
    pub storm_control: Option<Value>,
    /// Bits per second towards the container.
    pub ingress_rate: u64,
    /// Bits.
    pub ingress_burst: u64,
    /// Bits per second from the container.
    pub egress_rate: u64,
    /// Bits.
    pub egress_burst: u64,
    /// Subnets that are limited; all if none is named.
    pub shaped_subnets: Vec<String>,
    /// Subnets that are not limited.
    pub unshaped_subnets: Vec<String>,
}

/// The reference plugin's default.
pub const DEFAULT_BRIDGE: &str = "cni0";

impl Default for Bridge {
    fn default() -> Self {
        Self {
            bridge: DEFAULT_BRIDGE.to_owned(),
            is_gateway: false,
            is_default_gateway: false,
            force_address: false,
            ip_masq: false,
            ip_masq_backend: None,
            non_masquerade_cidrs: Vec::new(),
            mtu: 0,
            hairpin_mode: false,
            promisc_mode: false,
            vlan: 0,
            vlan_trunk: Vec::new(),
            preserve_default_vlan: false,
            macspoofchk: false,
            enabledad: false,
            disable_container_interface: false,
            port_isolation: false,
            mode: None,
            update_existing: false,
            vlans: None,
            uplink: None,
            uplink_move_address: false,
            ipspoofchk: false,
            trusted: false,
            ingress_policy: None,
            filters: None,
            big_tcp: None,
            storm_control: None,
            ingress_rate: 0,
            ingress_burst: 0,
            egress_rate: 0,
            egress_burst: 0,
            shaped_subnets: Vec::new(),
            unshaped_subnets: Vec::new(),
        }
    }
}

impl Bridge {
    /// The interface that becomes a port of the bridge, if one is named.
    pub fn uplink(&self) -> Option<&str> {
        self.uplink.as_deref().filter(|name| !name.is_empty())
    }
}

/// One VLAN, or a range of them with both ends; 1 to 4094.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct VlanRange {
    /// A single VLAN.
    pub id: Option<u16>,
    /// The first of a range.
    #[serde(rename = "minID")]
    pub min: Option<u16>,
    /// The last of a range.
    #[serde(rename = "maxID")]
    pub max: Option<u16>,
}

//! What a port may do less than an open one.

use serde::{Deserialize, Serialize};

/// The restrictions of one port. The default is an open port.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Restrictions {
    /// `portIsolation`: reaches no other isolated port of its bridge.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub isolated: bool,
    /// `macspoofchk`: sends from its own MAC address only.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub mac_check: bool,
    /// `ipspoofchk`: sends from its own addresses only, in IP, ARP and neighbour discovery.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub ip_check: bool,
    /// `trusted`: despite `ipspoofchk` it sends router advertisements, redirects and DHCP servers' messages.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub trusted: bool,
    /// `ingressPolicy`.
    #[serde(skip_serializing_if = "IngressPolicy::is_open")]
    pub ingress: IngressPolicy,
    /// VLAN membership; none where the port is in no VLAN and sends no tags.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vlans: Option<Vlans>,
    /// `stormControl`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storm: Option<StormControl>,
}

impl Restrictions {
    /// Whether the port is checked: it takes no other port's address, and no other port takes its.
    pub fn is_checked(&self) -> bool {
        self.mac_check || self.ip_check
    }

    /// The configuration keys that ask for them, as reports name them.
    pub fn names(&self) -> Vec<String> {
        [
            ("portIsolation", self.isolated),
            ("macspoofchk", self.mac_check),
            ("ipspoofchk", self.ip_check),
            ("ingressPolicy", !self.ingress.is_open()),
            ("vlan", self.vlans.is_some()),
            ("stormControl", self.storm.is_some()),
        ]
        .into_iter()
        .filter(|(_, asked)| *asked)
        .map(|(name, _)| name.to_owned())
        .collect()
    }
}

/// Who may open a connection to the container (the reference firewall plugin's `ingressPolicy`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IngressPolicy {
    /// Anybody.
    #[default]
    Open,
    /// The containers of its own bridge and the node; no other bridge's.
    SameBridge,
    /// The node alone; no other container.
    Isolated,
}

impl IngressPolicy {
    /// Whether it is anybody.
    pub fn is_open(&self) -> bool {
        *self == Self::Open
    }
}

/// The VLANs that a port is a member of; ids 1 to 4094.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Vlans {
    /// The VLAN of its untagged frames (the PVID); none: they are dropped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub untagged: Option<u16>,
    /// The VLANs that it sends and receives tagged, ascending.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tagged: Vec<u16>,
    /// `preserveDefaultVlan`: it also receives, untagged, what is in VLAN 1.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub default: bool,
}

/// What a port may flood, in packets a second; none: as much as it likes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StormControl {
    /// Broadcast.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub broadcast: Option<u32>,
    /// Multicast.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub multicast: Option<u32>,
}

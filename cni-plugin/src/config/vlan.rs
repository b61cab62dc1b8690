//! The keys of `vlan` and of `shunt` with `mode: vlan`: those of the reference vlan plugin, and `dataplane`.

use serde::Deserialize;
use serde_json::Value;
use shunt_agent_api::interface_name;

use super::error::ConfigError;
use super::rules::{MTU, invalid, one_of};
use crate::call::check_interface;

/// See the reference plugin's documentation; `dataplane` is shunt's own.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct Vlan {
    /// The interface that the VLAN is on. Empty, with `linkInContainer`: the one that the chain's first plugin made.
    pub master: String,
    /// The VLAN.
    #[cfg_attr(test, schemars(range(max = 4094)))]
    pub vlan_id: u16,
    /// MTU of the interface; 0 means the master's.
    pub mtu: u32,
    /// Whether the master is in the container, not on the node.
    pub link_in_container: bool,
    /// `auto`, `kernel` or `ebpf`: who takes tags off and puts them on.
    pub dataplane: Option<String>,
}

/// Who takes tags off and puts them on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dataplane {
    /// The kernel where it has VLAN devices, else the agent's programs.
    Auto,
    /// A VLAN device of the kernel's.
    Kernel,
    /// The agent's programs, with a veth.
    Ebpf,
}

impl Vlan {
    /// Whether the master is the interface that an earlier plugin of the chain made.
    pub fn is_chained(&self) -> bool {
        self.master.is_empty()
    }

    /// The name of the interface where the runtime says `ifname`.
    pub fn interface(&self, ifname: &str) -> String {
        if self.is_chained() { interface_name(ifname, self.vlan_id) } else { ifname.to_owned() }
    }

    /// Who takes tags off and puts them on.
    pub fn dataplane(&self) -> Dataplane {
        match self.dataplane.as_deref() {
            Some("kernel") => Dataplane::Kernel,
            Some("ebpf") => Dataplane::Ebpf,
            _ => Dataplane::Auto,
        }
    }
}

/// Keys of a bridge's port that mean nothing on a VLAN's interface, and must not be taken to be in force.
const OF_BRIDGES: [&str; 20] = [
    "isGateway",
    "isDefaultGateway",
    "ipMasq",
    "nonMasqueradeCIDRs",
    "hairpinMode",
    "promiscMode",
    "vlan",
    "vlanTrunk",
    "preserveDefaultVlan",
    "vlans",
    "macspoofchk",
    "ipspoofchk",
    "trusted",
    "portIsolation",
    "ingressPolicy",
    "filters",
    "bigTcp",
    "stormControl",
    "uplink",
    "disableContainerInterface",
];

/// Checks the values; `config` is the whole configuration.
///
/// # Errors
/// [`ConfigError::Invalid`].
pub(super) fn check(vlan: &Vlan, config: &Value) -> Result<(), ConfigError> {
    if vlan.vlan_id > 4094 {
        return Err(invalid("vlanId", format!("{} is not between 0 and 4094", vlan.vlan_id)));
    }
    if vlan.mtu != 0 && !MTU.contains(&vlan.mtu) {
        return Err(invalid("mtu", format!("{} is not between 68 and 65535", vlan.mtu)));
    }
    if vlan.master.is_empty() && !vlan.link_in_container {
        return Err(invalid("master", "names no interface"));
    }
    if !vlan.master.is_empty() {
        check_interface(&vlan.master).map_err(|error| invalid("master", error.to_string()))?;
    }
    one_of("dataplane", vlan.dataplane.as_deref(), &["auto", "kernel", "ebpf", ""])?;
    if vlan.vlan_id == 0 && vlan.dataplane() == Dataplane::Ebpf {
        return Err(invalid("vlanId", "0 is the kernel's only: `dataplane: ebpf` tags with 1 to 4094"));
    }
    let is_set = |key: &&str| match config.get(*key) {
        None | Some(Value::Bool(false)) => false,
        Some(value) => *value != 0 && *value != "",
    };
    match OF_BRIDGES.iter().copied().find(is_set) {
        Some(key) => Err(invalid(key, "means nothing on a VLAN's interface")),
        None => Ok(()),
    }
}

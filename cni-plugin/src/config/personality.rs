//! Who the plugin is to be, by the configuration's `type`.

/// A role; each takes the keys of the plugin that it replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Personality {
    /// Everything in one call; also adopts another plugin's interface.
    Shunt,
    /// The reference `bridge` plugin.
    Bridge,
    /// The reference `vlan` plugin.
    Vlan,
    /// The reference `portmap` plugin.
    Portmap,
    /// The reference `bandwidth` plugin.
    Bandwidth,
    /// The reference `loopback` plugin.
    Loopback,
    /// An IPAM plugin with host-local's keys and files.
    Ipam,
}

/// The name of the IPAM plugin that runs in this process.
pub const BUILT_IN_IPAM: &str = "shunt-ipam";

impl Personality {
    /// The role that a configuration's `type` asks for.
    pub fn of_type(name: &str) -> Option<Self> {
        Some(match name {
            "shunt" => Self::Shunt,
            "shunt-bridge" | "bridge" => Self::Bridge,
            "shunt-vlan" | "vlan" => Self::Vlan,
            "shunt-portmap" | "portmap" => Self::Portmap,
            "shunt-bandwidth" | "bandwidth" => Self::Bandwidth,
            "loopback" => Self::Loopback,
            BUILT_IN_IPAM => Self::Ipam,
            _ => return None,
        })
    }

    /// Whether a plugin called under `program` with this configuration was called as its IPAM: another main plugin runs
    /// it with the main plugin's own `type`.
    pub fn is_ipam_call(program: &str, main: &str, ipam: &str) -> bool {
        program == BUILT_IN_IPAM || (program == ipam && program != main)
    }
}

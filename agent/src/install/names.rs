//! The names that the plugin is called under.

/// Links of shunt's own, beside the plugin `shunt`.
pub const PERSONALITIES: [&str; 5] =
    ["shunt-bridge", "shunt-vlan", "shunt-portmap", "shunt-bandwidth", "shunt-ipam"];

/// The reference plugins' names, which the plugin takes where it is asked to.
pub const REFERENCE: [&str; 4] = ["bridge", "vlan", "portmap", "bandwidth"];

/// The reference plugin that sets `lo` up. containerd calls it for every pod, and no pod starts where it is missing. shunt takes the name where
/// nobody has it; a reference plugin that is there stays, and one that comes later takes it.
pub const LOOPBACK: &str = "loopback";

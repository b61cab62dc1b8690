//! What an attachment would lose with the programs.

use std::fmt;

use shunt_agent_api::{AttachmentKey, BridgePort};

use super::reference::ReferencePlugins;

/// One thing that nobody would do any more, and the cure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// The restrictions of a port.
    Restricted {
        /// Whose.
        key: AttachmentKey,
        /// The configuration's keys.
        restrictions: Vec<String>,
    },
    /// An interface in a VLAN that the programs make.
    VlanInterface(AttachmentKey),
    /// The way of a bridge out of the node.
    Uplink {
        /// Whose.
        key: AttachmentKey,
        /// The interface.
        uplink: String,
    },
    /// What no other plugin takes over.
    NotHandedOver {
        /// Whose.
        key: AttachmentKey,
        /// What.
        what: &'static str,
        /// Why not.
        why: String,
    },
    /// A state file, whose attachment may be restricted.
    Unreadable {
        /// The file.
        file: String,
        /// What is wrong with it.
        why: String,
    },
    /// The ways of the cluster's pods to those of other nodes.
    Routes {
        /// Pods of this node.
        pods: usize,
        /// Prefixes of others.
        routes: usize,
    },
    /// The runtime would have no network configuration to end pods by.
    LastConfiguration {
        /// Pods of this node.
        pods: usize,
        /// The configuration that goes.
        file: String,
    },
    /// A network that names a plugin of shunt's.
    Configured {
        /// The file.
        file: String,
        /// The plugin.
        plugin: String,
    },
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Restricted { key, restrictions } => write!(
                f,
                "{key}: {} would end; delete the container first, or set it down",
                restrictions.join(", ")
            ),
            Self::VlanInterface(key) => {
                write!(f, "{key}: its VLAN interface would be cut off; delete the container first")
            }
            Self::Uplink { key, uplink } => write!(
                f,
                "{key}: {uplink} would leave its bridge, and take its addresses along; delete the container first"
            ),
            Self::NotHandedOver { key, what, why } => write!(f, "{key}: {what} would end: {why}"),
            Self::Unreadable { file, why } => {
                write!(f, "{file}: {why}; what it restricts is not known: delete its container, and the file")
            }
            Self::Routes { pods, routes } => write!(
                f,
                "{pods} pods would no longer reach those of other nodes, to whom {routes} routes of the cluster's network lead; delete \
                 them first"
            ),
            Self::LastConfiguration { pods, file } => write!(
                f,
                "{file}: goes, and without another configuration the runtime cannot end {pods} pods; delete them first, or put \
                 another one there"
            ),
            Self::Configured { file, plugin } => {
                write!(
                    f,
                    "{file}: names the plugin {plugin}, which goes; name another one or remove the file"
                )
            }
        }
    }
}

/// Everything that an attachment would lose.
pub(super) fn of_port(port: &BridgePort, plugins: &ReferencePlugins) -> Vec<Obstacle> {
    let key = || port.key.clone();
    let mut obstacles = Vec::new();
    let restrictions = port.restrictions.names();
    if !restrictions.is_empty() {
        obstacles.push(Obstacle::Restricted { key: key(), restrictions });
    }
    if port.vlan.is_some() {
        obstacles.push(Obstacle::VlanInterface(key()));
    }
    if let Some(uplink) = &port.service.uplink {
        obstacles.push(Obstacle::Uplink { key: key(), uplink: uplink.name.clone() });
    }
    let needed = [
        (!port.mappings.is_empty(), "host ports", plugins.lacking_for_host_ports()),
        (!port.masquerade.is_empty(), "masquerading", plugins.lacking_for_masquerading()),
    ];
    let lacking = needed.into_iter().filter(|(is_needed, ..)| *is_needed);
    obstacles.extend(lacking.filter_map(|(_, what, lacking)| {
        lacking.map(|why| Obstacle::NotHandedOver { key: key(), what, why })
    }));
    obstacles
}

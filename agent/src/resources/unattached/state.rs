//! What is known of a port that is no attachment's.

use std::collections::BTreeMap;

use shunt_agent_api::AttachmentKey;

/// The plugin's mark in front of the key in a host end's alias.
const MARK: &str = "shunt:";

/// A port that is no attachment's.
#[derive(Clone, Debug)]
pub(crate) struct Unattached {
    /// Its host end's name.
    pub(crate) name: String,
    /// The bridge of its entry in `PORTS`.
    pub(super) bridge: Option<u32>,
    /// Whose it is, as its alias says.
    pub(super) owner: Option<AttachmentKey>,
    /// The slots of its counters and of its bridge's.
    pub(super) slots: Vec<u32>,
    /// Whether it is a VLAN's gateway, which has no record of its own.
    pub(super) is_gateway: bool,
}

/// Ports that are no attachment's, by the ifindexes of their host ends.
pub(crate) type UnattachedPorts = BTreeMap<u32, Unattached>;

/// The attachment that a host end's alias names.
pub(super) fn owner(alias: &str) -> Option<AttachmentKey> {
    let mut parts = alias.strip_prefix(MARK)?.split('/').map(str::to_owned);
    let (network, container, ifname) = (parts.next()?, parts.next()?, parts.next()?);
    parts.next().is_none().then_some(AttachmentKey { network, container, ifname })
}

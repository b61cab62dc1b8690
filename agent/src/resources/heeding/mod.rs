//! Others' rules for bridged packets, and whether they are heeded: then a flow between containers is opened by the kernel's way, and the programs
//! ask again while it lasts (the stage `accept`).

mod follow;
mod tracking;

use shunt_agent_api::BridgePort;

use crate::config::{FilterLease, Filters};
use crate::registry::Attachment;
use crate::resources::Node;

/// Whether others' rules are heeded, and why.
#[derive(Debug)]
pub(crate) struct Heeded {
    mode: Filters,
    lease: FilterLease,
    /// Whether ports are to be heeded.
    is_on: bool,
    /// Whether others have rules for what the node sends by a bridge.
    is_node_heeded: bool,
    /// Why TCP stays with the kernel; none where it does not.
    tcp: Option<String>,
    /// Whether flows that were only bridged may be among those that connection tracking has.
    has_been_on: bool,
}

impl Heeded {
    pub(crate) fn new(mode: Filters, lease: FilterLease) -> Self {
        Self { mode, lease, is_on: false, is_node_heeded: false, tcp: None, has_been_on: false }
    }

    /// Whether flows between containers meet others' rules.
    pub(crate) fn is_on(&self) -> bool {
        self.is_on
    }

    /// Whether connection tracking may have seen flows that are none of the kernel's.
    pub(crate) fn has_been_on(&self) -> bool {
        self.has_been_on
    }

    /// Whether what the node sends by a bridge meets them.
    pub(crate) fn is_node_heeded(&self) -> bool {
        self.is_node_heeded
    }
}

impl Node {
    /// Whether others' rules are heeded at a port.
    pub(crate) fn heeds(&self, port: &BridgePort) -> bool {
        self.heeding.is_on && port.vlan.is_none() && port.restrictions.vlans.is_none()
    }

    /// What an operator has to know of it.
    pub(crate) fn heeding_warnings(&self) -> Vec<String> {
        let has_bridged = self.registry.attachments().any(Attachment::is_bridged);
        let tcp = self.heeding.tcp.as_ref().filter(|_| self.heeding.is_on && has_bridged);
        tcp.map(|why| {
            format!("TCP between containers stays with the kernel, as others' rules are heeded: {why}")
        })
        .into_iter()
        .collect()
    }
}

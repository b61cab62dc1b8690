//! Takes over from an agent with an older map ABI while traffic flows.

use crate::agent::OpenError;
use crate::datapath::FlowAffinity;
use crate::registry::{Attachment, Bridge};
use crate::resources::Node;
use crate::resources::node::Entries;

impl Node {
    /// Writes everything that is attached into this version's maps, and takes the older agent's links over. Its programs run,
    /// on its own maps, until adopting replaces them. False if there was no such agent.
    ///
    /// Every unknown flow is the kernel's meanwhile: the ports learn as after a time without programs.
    pub(crate) fn migrate(&mut self) -> Result<bool, OpenError> {
        let versions = self.datapath.older_versions();
        if versions.is_empty() {
            return Ok(false);
        }
        tracing::warn!(
            ?versions,
            "this upgrade cannot be undone: an older agent refuses the pins that this one leaves"
        );
        for bridge in self.registry.bridges().cloned().collect::<Vec<Bridge>>() {
            self.datapath.write_bridge(&bridge)?;
        }
        for attachment in self.registry.attachments().cloned().collect::<Vec<Attachment>>() {
            self.datapath.write_port(&attachment, FlowAffinity::Learn)?;
            self.datapath.write_mappings(&attachment)?;
        }
        for gateway in self.registry.gateways.values().cloned().collect::<Vec<_>>() {
            self.write_gateway(&gateway)?;
        }
        self.read_addresses()?;
        // What reaches restricted ports from others' interfaces is judged by these.
        self.find_foreign_ports(&Entries::new())?;
        self.datapath.carry_links()?;
        tracing::info!(?versions, attachments = self.registry.len(), "taking over from an older agent");
        Ok(true)
    }
}

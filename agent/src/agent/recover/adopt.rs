//! Takes over the bridges and ports that an earlier agent attached.

use std::collections::HashSet;

use crate::resources::Node;
use crate::resources::node::Entries;

impl Node {
    /// Takes over every bridge and port. Returns the host ends whose program was missing: the kernel may have
    /// begun flows of these ports. A port that fails does not affect the others.
    pub(crate) fn adopt(&mut self, entries: &Entries) -> HashSet<u32> {
        let mut unsure = HashSet::new();
        for bridge in self.registry.bridges().cloned().collect::<Vec<_>>() {
            match self.adopt_bridge(&bridge, entries) {
                Ok(true) => {}
                Ok(false) => {
                    let ports = self.registry.of_bridge(bridge.link.index);
                    unsure.extend(ports.map(|attachment| attachment.port.host.index));
                }
                Err(error) => {
                    self.warn(format!("{}: cannot take over its programs: {error}", bridge.link.name));
                }
            }
        }
        for attachment in self.registry.attachments().cloned().collect::<Vec<_>>() {
            match self.adopt_port(&attachment, entries) {
                Ok(true) => {}
                Ok(false) => _ = unsure.insert(attachment.port.host.index),
                Err(error) => {
                    self.warn(format!("{}: cannot take over its programs: {error}", attachment.port.key));
                }
            }
        }
        unsure
    }
}

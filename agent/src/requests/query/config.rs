//! What of the configuration is in force.

use shunt_agent_api::ConfigReport;

use crate::resources::Node;

impl Node {
    /// The configuration as it was read at the start, with the room for connections that the maps have.
    pub(crate) fn config(&self) -> ConfigReport {
        let mut report = self.config.clone();
        let in_force = [
            ("max_flows", self.datapath.connections()),
            ("max_flows_per_container", self.datapath.share().most / 2),
        ];
        for (key, value) in in_force {
            let entries = report.keys.iter_mut().filter(|entry| entry.key == key);
            entries.for_each(|entry| entry.value = value.into());
        }
        report
    }
}

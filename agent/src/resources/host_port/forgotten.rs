//! Connections to host ports that the kernel opens: connection tracking knows where they went before, and would send them there for as long as they come.

use std::collections::HashSet;

use shunt_agent_api::{PortMapping, Protocol};

use crate::registry::Attachment;
use crate::resources::Node;
use crate::resources::tracked::{Forget, Led, Order};

impl Node {
    /// Has connection tracking forget connections to the host ports that a container `had` and no longer `has`, and datagrams to those that it `has` now, behind the
    /// rules that say where these lead; where the kernel opens them, or carries what it has opened.
    pub(crate) fn forget_connections(&mut self, had: Option<&Attachment>, has: Option<&Attachment>) {
        let is_opened = [had, has].into_iter().flatten().any(|attachment| attachment.opened);
        if !is_opened && !self.heeding.opening.carries() {
            return;
        }
        let [before, now] = [had, has].map(datagrams);
        let datagrams: Vec<PortMapping> = before.symmetric_difference(&now).copied().collect();
        let [mut ended, led]: [HashSet<Led>; 2] =
            [had, has].map(|of| of.map(|it| Led::all_of(it).collect()).unwrap_or_default());
        ended.retain(|it| !led.contains(it));
        if datagrams.is_empty() && ended.is_empty() {
            return;
        }
        let own = self.own_addresses().collect();
        self.tracker.order(Order::Forget(Forget { datagrams, ended, own }));
    }
}

/// The host ports of datagrams.
fn datagrams(of: Option<&Attachment>) -> HashSet<PortMapping> {
    let all = of.into_iter().flat_map(|attachment| &attachment.port.mappings);
    all.filter(|mapping| mapping.protocol == Protocol::Udp).copied().collect()
}

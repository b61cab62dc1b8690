//! Decides each second whether others' rules are heeded, and has the ports follow.

use std::collections::HashSet;

use shunt_dataplane::abi::HEEDING_TCP;

use super::tracking;
use crate::config::Filters;
use crate::datapath::FlowAffinity;
use crate::kernel::KernelError;
use crate::registry::{Attachment, Bridge};
use crate::resources::Node;
use crate::resources::external_rule::hooks::{self, Bypassed};

impl Node {
    /// Looks at others' rules before the first port is registered. An earlier agent may have heeded them.
    pub(crate) fn find_others_rules(&mut self) {
        self.heeding.has_been_on = !self.datapath.heeding().is_ok_and(|known| known.lease == 0);
        self.look_at_others_rules();
    }

    /// Looks at others' rules and at connection tracking's settings, and changes what follows from them.
    pub(crate) fn follow_others_rules(&mut self) {
        if self.heeding.mode == Filters::Bypass && !self.heeding.has_been_on {
            return;
        }
        self.look_at_others_rules();
        if let Err(error) = self.change_what_is_heeded() {
            tracing::warn!(%error, "cannot switch between heeding and bypassing others' rules");
        }
    }

    fn look_at_others_rules(&mut self) {
        let (is_on, is_node_heeded) = match self.heeding.mode {
            Filters::Bypass => (false, false),
            mode => match hooks::bypassed(&self.crossed()) {
                Ok(Bypassed { bridged, from_node, .. }) => {
                    (mode == Filters::Heed || !bridged.is_empty(), !from_node.is_empty())
                }
                // Whoever cannot be asked may have rules.
                Err(error) => {
                    tracing::debug!(%error, "cannot list others' rules: they are heeded");
                    (true, true)
                }
            },
        };
        if self.heeding.is_on != is_on {
            tracing::info!(
                heeded = is_on,
                "whether others' rules for bridged packets are heeded has changed"
            );
        }
        let tcp = if is_on { tracking::hindrance() } else { None };
        if self.heeding.tcp != tcp {
            tracing::info!(hindrance = tcp, "what keeps TCP between containers with the kernel has changed");
        }
        (self.heeding.is_on, self.heeding.is_node_heeded, self.heeding.tcp) = (is_on, is_node_heeded, tcp);
        self.heeding.has_been_on |= is_on;
    }

    fn change_what_is_heeded(&mut self) -> Result<(), KernelError> {
        let flags = if self.heeding.tcp.is_none() { HEEDING_TCP } else { 0 };
        if self.heeding.is_on {
            self.datapath.write_heeding(self.heeding.lease.nanoseconds(), flags)?;
        }
        self.change_heeded_bridges()?;
        self.change_heeded_ports()?;
        if !self.heeding.is_on {
            self.datapath.write_heeding(0, 0)?;
        }
        Ok(())
    }

    fn change_heeded_bridges(&mut self) -> Result<(), KernelError> {
        let heeded = self.heeding.is_node_heeded;
        let others: Vec<Bridge> = self.registry.bridges().filter(|it| it.heeded != heeded).cloned().collect();
        for bridge in others {
            let bridge = Bridge { heeded, ..bridge };
            self.datapath.write_bridge(&bridge)?;
            self.registry.insert_bridge(bridge);
        }
        Ok(())
    }

    /// Flows of a port that is heeded no longer may have been translated on the kernel's way: they are learned before others are fast.
    fn change_heeded_ports(&mut self) -> Result<(), KernelError> {
        let is_other = |it: &&Attachment| it.heeded != self.heeds(&it.port);
        let others: Vec<Attachment> = self.registry.attachments().filter(is_other).cloned().collect();
        let mut unsure = HashSet::new();
        for from in others {
            let to = Attachment { heeded: !from.heeded, ..from };
            let host = to.port.host.index;
            if !to.heeded {
                self.datapath.write_affinity(host, FlowAffinity::Learn)?;
                unsure.insert(host);
            }
            self.datapath.rewrite_port(&to)?;
            self.registry.insert(to);
        }
        if !unsure.is_empty() {
            self.learn(&unsure);
        }
        Ok(())
    }
}

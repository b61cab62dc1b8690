//! Masquerading: where others have rules the kernel begins connections by ours, behind theirs. And which of what the kernel opens the programs carry.

use shunt_agent_api::{BridgePort, FilterReport};

use crate::config::Filters;
use crate::kernel::KernelError;
use crate::registry::Attachment;
use crate::resources::Node;

impl Node {
    /// Whether the programs carry what the kernel opens for a port: by its host ports, and what it masquerades.
    pub(crate) fn carries(&self, port: &BridgePort) -> bool {
        self.may_carry() && (self.heeds_host_ports(port) || self.asks_for_masqueraded(port))
    }

    /// Whether they carry what is masqueraded, of any port.
    pub(crate) fn carries_any_masqueraded(&self) -> bool {
        self.may_carry() && self.asks_for_any_masqueraded()
    }

    /// Whether no rule judges each packet, and the programs know which way packets take.
    fn may_carry(&self) -> bool {
        self.heeding.kept.by.is_none() && self.heeding.routes.are_known()
    }

    /// Whether others' rules are asked for what the kernel masquerades, of any port.
    pub(super) fn asks_for_any_masqueraded(&self) -> bool {
        let is_asked = |attachment: &Attachment| self.asks_for_masqueraded(&attachment.port);
        self.masquerade.is_behind_others() && self.registry.attachments().any(is_asked)
    }

    /// Whether others' rules are asked for what the kernel masquerades for a port.
    pub(super) fn asks_for_masqueraded(&self, port: &BridgePort) -> bool {
        let is_meant = port.is_bridged() && !port.masquerade.is_empty() && self.masquerade.is_behind_others();
        is_meant && self.heeding.mode_of(port.bridge.index, port.service.filters) != Filters::Bypass
    }

    /// Whose rules are asked for what, for `status`.
    pub(crate) fn filters(&self) -> FilterReport {
        let is_masqueraded = self.is_masqueraded();
        FilterReport {
            masquerades_by: self.masquerade.external_filter().filter(|_| is_masqueraded).map(str::to_owned),
            carries: self.carries_any_masqueraded(),
            ..self.heeding.report(self.opens_host_ports())
        }
    }

    /// Has the programs carry what they are to, and leave the rest.
    pub(super) fn change_who_is_carried(&mut self) -> Result<(), KernelError> {
        if !self.registry.has_masqueraded() && !self.registry.has_mapped() {
            return Ok(());
        }
        let is_other = |it: &&Attachment| it.carried != self.carries(&it.port);
        let others: Vec<Attachment> = self.registry.attachments().filter(is_other).cloned().collect();
        for from in others {
            let to = Attachment { carried: !from.carried, ..from };
            self.datapath.write_mapped(&to)?;
            self.registry.insert(to);
        }
        Ok(())
    }
}

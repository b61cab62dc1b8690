//! Host ports where the kernel refuses the rules that would open them (no nf_tables NAT): the programs open them, as without `filter_host_ports`.

use crate::failpoints;
use crate::nft::NftError;
use crate::registry::Attachment;
use crate::resources::Node;

impl Node {
    /// The programs open all host ports from now on. An entry that cannot be written is repaired with its port.
    pub(crate) fn open_by_programs(&mut self, error: &NftError) {
        self.heeding.opening.refuse(error.to_string(), failpoints::now());
        let opened: Vec<Attachment> = self.registry.attachments().filter(|it| it.opened).cloned().collect();
        for attachment in opened {
            let to = Attachment { opened: false, ..attachment };
            let written = self.datapath.write_mappings(&to).and_then(|()| self.datapath.rewrite_port(&to));
            if let Err(error) = written {
                tracing::warn!(key = %to.port.key, %error, "nobody opens the host ports of a container");
            }
            self.registry.insert(to);
        }
    }

    /// What an operator has to know of it.
    pub(crate) fn refused_opening(&self) -> Option<String> {
        let why = &self.heeding.opening.refused.as_ref()?.why;
        let is_meant = |it: &Attachment| !it.opened && self.asks_for_host_ports(&it.port);
        self.registry.attachments().any(is_meant).then(|| {
            format!(
                "the kernel cannot open host ports, so others' rules are not asked who may use them: {why}"
            )
        })
    }
}

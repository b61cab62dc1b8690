//! Rules that may judge the packets of one flow differently: while there are any, all flows are the kernel's.

use shunt_netlink::NetlinkError;
use shunt_netlink::nf_tables::generation;

use crate::resources::Node;
use crate::resources::external_rule::{hooks, varying};

impl Node {
    /// Looks for such rules, unless nobody has changed any. Whoever cannot be asked may have some.
    pub(super) fn find_who_keeps_flows(&mut self) {
        let by = match self.who_keeps_flows() {
            Ok(None) => return,
            Ok(Some(by)) => by,
            Err(error) => {
                self.heeding.kept.read = None;
                Some(format!("others' rules cannot be read: {error}"))
            }
        };
        if self.heeding.kept.by != by {
            tracing::info!(by, "which rule keeps flows between containers with the kernel has changed");
        }
        self.heeding.kept.by = by;
    }

    /// None where nothing has changed since the last look.
    fn who_keeps_flows(&mut self) -> Result<Option<Option<String>>, NetlinkError> {
        // Asked first: what is changed meanwhile is looked at again.
        let generation = generation();
        let chains = hooks::chains_of_bridged(&self.crossed())?;
        let known = self.heeding.kept.read.as_ref();
        if known.is_some_and(|(read, of)| Some(*read) == generation && *of == chains) {
            return Ok(None);
        }
        let by = varying::first(&chains)?;
        self.heeding.kept.read = generation.map(|generation| (generation, chains));
        Ok(Some(by))
    }
}

//! Reads what `shunt-agent account` compares: the programs' counters before and after the kernel's own, so that a packet that is on its way
//! meanwhile is told from one that is missing.

use std::collections::HashMap;

use shunt_agent_api::{AccountReport, Counted, DropCount};
use shunt_dataplane::DropReason;

use crate::datapath::in_map;
use crate::registry::Attachment;
use crate::resources::departed::both_ways;
use crate::resources::{Node, Refusal};

impl Node {
    /// An [`AccountReport`] per attachment, in the order of their keys.
    ///
    /// # Errors
    /// Counters cannot be read.
    pub(crate) fn accounts(&mut self) -> Result<Vec<AccountReport>, Refusal> {
        let before = self.counted()?;
        let arrived: HashMap<_, _> =
            self.kernel.link_counters()?.into_iter().map(|link| (link.index, link.received)).collect();
        let mut drops = self.dropped_by_reason()?;
        let after = self.counted()?;
        let readings = before.into_iter().zip(after);
        let report = |(attachment, (before, after)): (&Attachment, _)| {
            let port = &attachment.port;
            AccountReport {
                network: port.key.network.clone(),
                container: port.key.container.clone(),
                ifname: port.key.ifname.clone(),
                host_ifname: port.host.name.clone(),
                before,
                arrived: arrived.get(&port.host.index).copied(),
                drops: drops.remove(&port.host.index).unwrap_or_default(),
                after,
            }
        };
        Ok(self.registry.attachments().zip(readings).map(report).collect())
    }

    /// The counters of every attachment, in the order of their keys.
    fn counted(&self) -> Result<Vec<Counted>, Refusal> {
        let counted = |slot| {
            let (from, to) = both_ways(self.datapath.maps.counters(slot).map_err(in_map("COUNTERS"))?);
            Ok(Counted { from, to })
        };
        self.registry.attachments().map(|attachment| counted(attachment.slot)).collect()
    }

    /// What was dropped, by interface.
    fn dropped_by_reason(&self) -> Result<HashMap<u32, Vec<DropCount>>, Refusal> {
        let mut drops: HashMap<_, Vec<_>> = HashMap::new();
        for (key, count) in self.datapath.maps.drops().map_err(in_map("DROPS"))? {
            let reason = DropReason::from_number(key.reason);
            let reason = reason.map_or_else(|| key.reason.to_string(), |reason| reason.name().to_owned());
            if count.packets > 0 {
                drops.entry(key.ifindex).or_default().push(DropCount { reason, packets: count.packets });
            }
        }
        drops.values_mut().for_each(|reasons| reasons.sort_by(|one, other| one.reason.cmp(&other.reason)));
        Ok(drops)
    }
}

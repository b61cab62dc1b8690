//! Keeps the counters of containers that go, and has them written.
//!
//! The counters of a container that goes are read after its programs are detached and before its slot has its next owner. What is kept is written
//! each second where it has changed, and when the agent ends.

use shunt_agent_api::{BridgePort, Pod, Traffic};
use shunt_dataplane::DropReason;
use shunt_dataplane::abi::{Count, PortCounters};

use crate::departed::{Carried, Dropped};
use crate::resources::Node;

impl Node {
    /// Reads what an earlier agent has kept.
    pub(crate) fn read_departed(&mut self) {
        if let Some(kept) = &mut self.departed {
            kept.carried = self.store.departed();
        }
    }

    /// Writes what is kept, if it has changed.
    pub(crate) fn write_departed(&mut self) {
        let Some(kept) = self.departed.as_mut().filter(|kept| kept.is_changed) else { return };
        match self.store.write_departed(&kept.carried) {
            Ok(()) => (kept.is_changed, kept.has_failed) = (false, false),
            Err(error) if !kept.has_failed => {
                kept.has_failed = true;
                tracing::warn!(%error, "the counters of containers that are gone are not written");
            }
            Err(_) => {}
        }
    }

    /// Keeps what a container has carried that goes now. Unreadable counters are zero.
    pub(crate) fn keep_carried(&mut self, port: &BridgePort, slot: u32) {
        let Some(kept) = &mut self.departed else { return };
        let (from, to) = both_ways(self.datapath.maps.counters(slot).unwrap_or_default());
        let carried = Carried {
            from,
            to,
            drops: self.datapath.maps.drops_of(port.host.index).map(dropped).collect(),
            last: 0,
        };
        if carried == Carried::default() {
            return;
        }
        let (namespace, _) = Pod::names(port.pod.as_ref());
        let registry = &self.registry;
        let is_living = |name: &str| {
            let mut namespaces = registry.attachments().map(|known| Pod::names(known.port.pod.as_ref()).0);
            namespaces.any(|living| living == name)
        };
        kept.carried.add(&namespace, &carried, is_living);
        kept.is_changed = true;
    }
}

fn dropped((reason, count): (DropReason, Count)) -> Dropped {
    Dropped {
        stage: reason.stage().name().to_owned(),
        reason: reason.name().to_owned(),
        packets: count.packets,
        bytes: count.bytes,
    }
}

/// A port's counters as reports have them: what the container sent, and what it was sent.
pub(crate) fn both_ways(counters: PortCounters) -> (Traffic, Traffic) {
    let PortCounters { from_fast, from_kernel, from_dropped, to_fast, to_kernel, to_dropped } = counters;
    (traffic(from_fast, from_kernel, from_dropped), traffic(to_fast, to_kernel, to_dropped))
}

fn traffic(fast: Count, kernel: Count, dropped: Count) -> Traffic {
    Traffic {
        packets: fast.packets + kernel.packets,
        bytes: fast.bytes + kernel.bytes,
        fast: fast.packets,
        kernel: kernel.packets,
        dropped: dropped.packets,
    }
}

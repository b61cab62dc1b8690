//! Admission by capacity, and the events about free capacity.

use std::collections::HashSet;

use shunt_agent_api::{
    Allocation, AttachmentKey, BridgePort, CapacityReport, CarriedReport, EventKind, PoolReport, SlotsReport,
};

use crate::capacity::{Demand, Quantity, Shortage, Speed};
use crate::claims::Claim;
use crate::config::Admission;
use crate::resources::{Node, Refusal};

impl Node {
    /// Whether a port's limits fit into the free capacity. Called before anything is changed.
    ///
    /// # Errors
    /// [`Refusal::Capacity`], if admission is enforced.
    pub(crate) fn admit_bandwidth(&mut self, port: &BridgePort) -> Result<(), Refusal> {
        let demand = Demand::from(&port.bandwidth);
        if self.admission == Admission::Off || demand == Demand::default() {
            return Ok(());
        }
        self.read_speeds();
        let promised = self.promised_to_others(port);
        match self.ledger.admits(&port.key, demand, promised) {
            Err(shortage) if self.admission == Admission::Enforce => {
                Err(Refusal::Capacity { key: port.key.clone(), shortage: Box::new(shortage) })
            }
            Err(shortage) => {
                tracing::warn!(key = %port.key, %shortage, "attached beyond the capacity: admission only warns");
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    /// What claims have of the port's uplink whose pods are not attached yet, prepared or only allocated: the scheduler has given it away.
    fn promised_to_others(&self, port: &BridgePort) -> Demand {
        let Some(uplink) = self.ledger.uplink_of(&port.key.network) else { return Demand::default() };
        let pods = self.registry.attachments().filter_map(|known| known.port.pod.as_ref());
        let held = pods.filter_map(|pod| pod.claimed.as_ref()).flat_map(|claimed| &claimed.claims);
        let held: HashSet<&str> = held.map(String::as_str).collect();
        let own = port.pod.as_ref().map_or("", |pod| &pod.uid);
        let allocated = self.allocated.values().filter(|claim| self.claims.get(&claim.uid).is_none());
        let claims = self.claims.iter().chain(allocated);
        let is_own = |claim: &Claim| !own.is_empty() && claim.pod.uid == own;
        let waiting = claims.filter(|claim| !is_own(claim) && !held.contains(&*claim.uid));
        waiting.filter_map(|claim| claim.of_uplink(uplink)).fold(Demand::default(), Demand::and)
    }

    /// [`CapacityReport`], of the links as they are now. Unreadable counters are left out.
    pub(crate) fn capacity(&mut self) -> CapacityReport {
        self.read_speeds();
        let (total, free) = self.registry.slots.count();
        let mut report = self.ledger.report(SlotsReport { total: total.into(), free: free as u64 });
        for allocation in report.uplinks.iter_mut().flat_map(|uplink| &mut uplink.allocations) {
            let Allocation { network, container, ifname, .. } = allocation.clone();
            let known = self.registry.get(&AttachmentKey { network, container, ifname });
            let pod = known.and_then(|known| known.port.pod.as_ref());
            allocation.claimed = pod.is_some_and(|pod| pod.claimed.is_some());
        }
        for uplink in &mut report.uplinks {
            let counters = self.kernel.link_counters_of(&uplink.name).ok().flatten();
            uplink.carried =
                counters.map(|link| CarriedReport { egress: link.sent_bytes, ingress: link.received_bytes });
        }
        report
    }

    /// Sends an event for each uplink whose free capacity has changed.
    pub(crate) fn tell_capacity(&mut self) {
        let pools = self.ledger.pools();
        if pools == self.told {
            return;
        }
        for (uplink, egress, ingress) in pools.iter().filter(|uplink| !self.told.contains(uplink)) {
            let left = |pool: &PoolReport| format!("{} of {}", Quantity(pool.free), Quantity(pool.total));
            let detail = format!("left: egress {}, ingress {} bit/s", left(egress), left(ingress));
            self.events.tell(EventKind::Capacity, uplink, detail);
        }
        self.told = pools;
    }

    /// Reasons why an ADD fails or is useless, and warnings. A missing declared uplink is always a reason:
    /// the node has no way out.
    pub(crate) fn capacity_remarks(&mut self) -> (Vec<String>, Vec<String>) {
        self.read_speeds();
        let (gone, unknown): (Vec<_>, Vec<_>) =
            self.ledger.unknown().into_iter().partition(Shortage::is_no_link);
        let mut reasons: Vec<_> = gone.iter().map(ToString::to_string).collect();
        let unknown = unknown.iter().map(ToString::to_string);
        match self.ledger.exhausted() {
            Some(exhausted) if self.admission == Admission::Enforce => {
                reasons.extend(unknown.chain([exhausted]));
                (reasons, Vec::new())
            }
            _ => (reasons, unknown.collect()),
        }
    }

    /// Reads the speed of every uplink: links are created, deleted, plugged and bonded while the agent runs.
    pub(crate) fn read_speeds(&mut self) {
        for uplink in self.ledger.uplinks().map(str::to_owned).collect::<Vec<_>>() {
            let speed = self.speeds.read(&uplink).unwrap_or_else(|error| {
                tracing::warn!(uplink, %error, "cannot read the uplink's speed");
                Speed::Unknown
            });
            if self.ledger.set_speed(&uplink, speed) {
                tracing::info!(uplink, ?speed, "uplink speed");
            }
        }
    }
}

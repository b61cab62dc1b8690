//! What is the kernel's, in memory.

use std::collections::BTreeSet;

use shunt_dataplane::abi::translation::TupleKey;
use shunt_dataplane::abi::{
    AFFINITY_APART, AFFINITY_FAST, AFFINITY_LOOKUP, FlowKey, KernelShare, NO_SLOT, PortKey, STATION_APART,
    StationKey,
};
use shunt_dataplane::tables::{Claimant, KernelFlows};

use super::memory_tables::MemoryTables;

impl KernelFlows for MemoryTables {
    fn is_kernel_flow(&self, key: &FlowKey) -> bool {
        self.kernel_flows.borrow().contains(key)
    }

    fn record_kernel_flow(&self, key: &FlowKey) {
        self.kernel_flows.borrow_mut().insert(*key);
    }

    fn kernel_share(&self, slot: u32) -> Option<KernelShare> {
        Some(self.kernel_shares.borrow().get(&slot).copied().unwrap_or_default())
    }

    fn count_kernel_flow(&self, slot: u32) {
        for slot in BTreeSet::from([slot, NO_SLOT]) {
            self.kernel_shares.borrow_mut().entry(slot).or_default().flows += 1;
        }
    }

    fn refuse_kernel_flow(&self, slot: u32) {
        for slot in BTreeSet::from([slot, NO_SLOT]) {
            self.kernel_shares.borrow_mut().entry(slot).or_default().refused += 1;
        }
    }

    fn put_apart(&self, port: &PortKey, station: &StationKey) {
        if let Some(port) = self.ports.borrow_mut().get_mut(port) {
            port.affinity = AFFINITY_APART;
        }
        if let Some(station) = self.stations.borrow_mut().get_mut(station) {
            station.flags |= STATION_APART;
        }
    }

    fn incoming_flow(&self, key: &FlowKey) -> Option<u64> {
        self.incoming_flows.borrow().get(key).copied()
    }

    fn record_incoming_flow(&self, key: &FlowKey, now: u64) {
        self.incoming_flows.borrow_mut().insert(*key, now);
    }

    fn claimed(&self, by: Claimant, key: &TupleKey) -> Option<u64> {
        self.claims_of(by).borrow().get(key).copied()
    }

    fn claim(&self, by: Claimant, key: &TupleKey, now: u64) {
        self.claims_of(by).borrow_mut().insert(*key, now);
    }

    fn require_flow_lookup(&self, key: &PortKey) {
        if let Some(port) = self.ports.borrow_mut().get_mut(key)
            && port.affinity == AFFINITY_FAST
        {
            port.affinity = AFFINITY_LOOKUP;
        }
    }
}

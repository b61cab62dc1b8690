//! The kernel's flows in memory, and what each container has of them.

use shunt_dataplane::abi::{AFFINITY_APART, NO_SLOT, PortKey, STATION_APART, StationKey};

use super::memory_tables::MemoryTables;

impl MemoryTables {
    /// As the trait's `count_kernel_flow`.
    pub(super) fn count_flow(&self, slot: u32) {
        for slot in [slot, NO_SLOT] {
            self.kernel_shares.borrow_mut().entry(slot).or_default().flows += 1;
        }
    }

    /// As the trait's `refuse_kernel_flow`.
    pub(super) fn refuse_flow(&self, slot: u32) {
        for slot in [slot, NO_SLOT] {
            self.kernel_shares.borrow_mut().entry(slot).or_default().refused += 1;
        }
    }

    /// As the trait's `put_apart`.
    pub(super) fn mark_apart(&self, port: &PortKey, station: &StationKey) {
        if let Some(port) = self.ports.borrow_mut().get_mut(port) {
            port.affinity = AFFINITY_APART;
        }
        if let Some(station) = self.stations.borrow_mut().get_mut(station) {
            station.flags |= STATION_APART;
        }
    }
}

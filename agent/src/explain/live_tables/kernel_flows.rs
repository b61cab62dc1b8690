//! What is the kernel's.

use shunt_dataplane::abi::translation::TupleKey;
use shunt_dataplane::abi::{FlowKey, KernelFlow, KernelShare, PortKey, StationKey};
use shunt_dataplane::tables::{Claimant, KernelFlows};

use super::super::asked::Asked;
use super::{LiveTables, flow_name};

impl KernelFlows for LiveTables<'_> {
    fn is_kernel_flow(&self, key: &FlowKey) -> bool {
        let asked = (Asked::KernelFlow, "KERNEL_FLOWS");
        let found = |_: &KernelFlow| "the kernel's".to_owned();
        self.look(asked, &self.maps.kernel_flows, (key, flow_name(key)), found).is_some()
    }

    fn record_kernel_flow(&self, _key: &FlowKey) {
        self.note(Asked::KernelFlow, "its flow would be noted as the kernel's".to_owned());
    }

    fn kernel_share(&self, slot: u32) -> Option<KernelShare> {
        self.kernel_share_of(slot)
    }

    fn count_kernel_flow(&self, _slot: u32) {}

    fn refuse_kernel_flow(&self, _slot: u32) {
        self.note(Asked::KernelFlow, "there is no room for its flow: it would be put apart".to_owned());
    }

    fn put_apart(&self, _port: &PortKey, _station: &StationKey) {}

    fn incoming_flow(&self, key: &FlowKey) -> Option<u64> {
        let asked = (Asked::IncomingFlow, "INCOMING_FLOWS");
        let found = |_: &KernelFlow| "it began outside".to_owned();
        self.look(asked, &self.maps.incoming_flows, (key, flow_name(key)), found).map(|flow| flow.noticed)
    }

    fn record_incoming_flow(&self, _key: &FlowKey, _now: u64) {
        self.note(Asked::IncomingFlow, "its flow would be noted as one that began outside".to_owned());
    }

    fn claimed(&self, by: Claimant, key: &TupleKey) -> Option<u64> {
        self.claim_of(by, key)
    }

    fn claim(&self, _by: Claimant, _key: &TupleKey, _now: u64) {
        self.note(Asked::Translation, "its tuple would be noted as the kernel's".to_owned());
    }

    fn require_flow_lookup(&self, _key: &PortKey) {}
}

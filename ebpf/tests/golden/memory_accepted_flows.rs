//! What others' rules have let through, in memory.

use shunt_dataplane::abi::{AcceptedFlow, FlowKey, Heeding, Question};
use shunt_dataplane::tables::AcceptedFlows;

use super::memory_tables::MemoryTables;

impl AcceptedFlows for MemoryTables {
    fn heeding(&self) -> Option<Heeding> {
        Some(self.heeding)
    }

    fn accepted_flow(&self, key: &FlowKey) -> Option<AcceptedFlow> {
        self.accepted.borrow().get(key).copied()
    }

    fn accept_flow(&self, key: &FlowKey, value: &AcceptedFlow) {
        self.accepted.borrow_mut().insert(*key, *value);
    }

    fn count_checked(&self, key: &FlowKey) -> Option<u16> {
        let mut accepted = self.accepted.borrow_mut();
        let flow = accepted.get_mut(key)?;
        flow.checked = flow.checked.saturating_add(1);
        Some(flow.checked)
    }

    fn ask_agent(&self, question: &Question) {
        self.opened.borrow_mut().push(*question);
    }

    fn forget_accepted_flow(&self, key: &FlowKey) {
        self.accepted.borrow_mut().remove(key);
    }
}

//! `ACCEPTED`, `HEEDING` and `OPENED`: what others' rules have let through.

use shunt_dataplane::abi::{AcceptedFlow, FlowKey, Heeding, Question};
use shunt_dataplane::tables::AcceptedFlows;

use super::KernelTables;
use super::update::ANY;
use crate::maps::{ACCEPTED, HEEDING, OPENED};

impl AcceptedFlows for KernelTables {
    #[inline(always)]
    fn heeding(&self) -> Option<Heeding> {
        HEEDING.get(0).copied()
    }

    #[inline(always)]
    fn accepted_flow(&self, key: &FlowKey) -> Option<AcceptedFlow> {
        // SAFETY: the pointer is to a live map value. One that is replaced meanwhile is read as a mixture at worst, of times when something of
        // the flow was let through.
        unsafe { ACCEPTED.get(key) }.copied()
    }

    #[inline(always)]
    fn accept_flow(&self, key: &FlowKey, value: &AcceptedFlow) {
        // An LRU map makes room; should it fail under contention, the next packet goes by the kernel, too.
        let _ = ACCEPTED.insert(key, value, ANY);
    }

    #[inline(always)]
    fn count_checked(&self, key: &FlowKey) -> Option<u16> {
        let flow = ACCEPTED.get_ptr_mut(key)?;
        // SAFETY: the pointer is to a live map value, of which nothing but this is written in place. Should it have become another flow's, that one is
        // asked for sooner.
        let checked = unsafe { &mut (*flow).checked };
        *checked = checked.saturating_add(1);
        Some(*checked)
    }

    #[inline(always)]
    fn ask_agent(&self, question: &Question) {
        // Without room it is asked again.
        let _ = OPENED.output::<Question>(question, 0);
    }

    #[inline(always)]
    fn forget_accepted_flow(&self, key: &FlowKey) {
        // There may be none.
        let _ = ACCEPTED.remove(key);
    }
}

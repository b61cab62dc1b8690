//! The priority of the thread that takes clients in.
//!
//! The kernel has it share the processor of the client that wakes it (`WF_SYNC`, `wake_affine_idle`, kernel/sched/fair.c), and lets a plugin,
//! which goes on making interfaces, finish its slice first (`RUN_TO_PARITY`): in three ADDs of four the agent heard of a plugin only when that
//! went to sleep, to wait for the agent. A thread of real-time priority runs at once, wherever it wakes. It runs for some 30 us a client and
//! then sleeps, so nobody notices; no other thread is made so, nor does any inherit it.

use thread_priority::ThreadPriority;
use thread_priority::unix::{
    RealtimeThreadSchedulePolicy, ThreadSchedulePolicy, set_thread_priority_and_policy, thread_native_id,
};

/// Gives the calling thread the least real-time priority (`SCHED_FIFO`, sched(7)), before every ordinary thread. Without `CAP_SYS_NICE`, or in
/// a control group that may have no such threads, it stays as it is: clients are served all the same, and an ADD takes a tenth longer.
pub(super) fn do_not_wait_for_clients() {
    let policy = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
    if let Err(error) = set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, policy) {
        tracing::debug!(?error, "clients may be taken in later");
    }
}

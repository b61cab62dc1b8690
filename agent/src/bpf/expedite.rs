//! Short grace periods while a program is attached.
//!
//! To make a tcx link the kernel waits for an RCU grace period with the lock of all network configuration held
//! (`tcx_entry_sync`, kernel/bpf/tcx.c): 8 to 20 ms, during which nobody on the node can configure an interface. Every
//! other wait under that lock is expedited (`synchronize_net`, net/core/dev.c), and takes 0.05 ms; this one was left
//! out. The kernel has a switch that expedites all of them, and it is thrown for as long as the one call takes
//! (measured: 0.06 ms instead of 12). It changes how long anybody waits, never what they wait for.
//!
//! Where the switch cannot be thrown (sysfs mounted read-only, a kernel without it), attaching takes its time.

use std::fs;

const SWITCH: &str = "/sys/kernel/rcu_expedited";

/// While this lives, grace periods are expedited.
#[derive(Debug)]
pub struct Expedited {
    /// Whether it was this that threw the switch: an operator's own setting is left alone.
    thrown: bool,
}

impl Expedited {
    /// Throws the switch, if it is not thrown already.
    pub fn begin() -> Self {
        let off = fs::read_to_string(SWITCH).is_ok_and(|value| value.trim() == "0");
        Self { thrown: off && fs::write(SWITCH, "1").is_ok() }
    }
}

impl Drop for Expedited {
    fn drop(&mut self) {
        if self.thrown
            && let Err(error) = fs::write(SWITCH, "0")
        {
            tracing::warn!(%error, switch = SWITCH, "grace periods stay expedited");
        }
    }
}

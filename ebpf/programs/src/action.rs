//! Carries out a verdict.

use aya_ebpf::bindings::{__sk_buff, BPF_F_INGRESS, TC_ACT_SHOT, TC_ACT_UNSPEC};
use aya_ebpf::helpers::generated::{bpf_redirect, bpf_redirect_peer};
use shunt_dataplane::abi::watch::WatchedProgram;
use shunt_dataplane::{Delivery, Verdict, Way};

use crate::route;
use crate::skb::Skb;

/// Carries out `verdict` and returns the classifier's action.
///
/// The redirect helpers only record the target: the kernel redirects after the program, and drops silently what it cannot deliver.
/// Everything that can be checked has been checked.
#[inline(always)]
pub(crate) fn take<const KIND: u8>(packet: &Skb<KIND>, verdict: Verdict, program: WatchedProgram) -> i32 {
    said(packet.raw(), take_silently(packet, verdict), program)
}

/// The debug build logs the decision, and the watched build tells it.
#[inline(always)]
pub(crate) fn said(skb: *mut __sk_buff, action: i32, program: WatchedProgram) -> i32 {
    #[cfg(feature = "decisions")]
    crate::decisions::say(skb);
    #[cfg(feature = "watched")]
    crate::watch::tell(skb, action, program);
    let _ = (skb, program);
    action
}

/// The same for a subprogram: its program logs when it returns.
#[inline(always)]
pub(crate) fn take_silently<const KIND: u8>(packet: &Skb<KIND>, verdict: Verdict) -> i32 {
    #[cfg(feature = "decisions")]
    crate::decisions::record(packet, &verdict);
    let _ = packet;
    // Verifier: noted in each arm. Before them, what a verdict of another kind does not have would be kept across the look-up, and an
    // uninitialized register be copied.
    match verdict {
        Verdict::Deliver(Delivery { ifindex, way: Way::Peer, .. }) => {
            noted::<KIND, 0>(packet, &verdict);
            // SAFETY: the helpers take numbers only.
            unsafe { bpf_redirect_peer(ifindex, 0) as i32 }
        }
        Verdict::Deliver(Delivery { ifindex, way: Way::Port, .. }) => {
            noted::<KIND, 1>(packet, &verdict);
            // SAFETY: as above.
            unsafe { bpf_redirect(ifindex, 0) as i32 }
        }
        Verdict::Deliver(Delivery { ifindex, way: Way::Neighbor(next_hop), .. }) => {
            noted::<KIND, 2>(packet, &verdict);
            route::redirect(ifindex, next_hop)
        }
        Verdict::Deliver(Delivery { ifindex, way: Way::Wire | Way::Back, .. }) => {
            noted::<KIND, 3>(packet, &verdict);
            // SAFETY: as above.
            unsafe { bpf_redirect(ifindex, 0) as i32 }
        }
        Verdict::Deliver(Delivery { ifindex, way: Way::Into, .. }) => {
            noted::<KIND, 4>(packet, &verdict);
            // SAFETY: as above.
            unsafe { bpf_redirect(ifindex, u64::from(BPF_F_INGRESS)) as i32 }
        }
        Verdict::Pass(_) | Verdict::Deliver(Delivery { way: Way::Onward, .. }) => {
            noted::<KIND, 5>(packet, &verdict);
            TC_ACT_UNSPEC
        }
        // The copies have been sent.
        Verdict::Drop(_) | Verdict::Flooded(_) => {
            noted::<KIND, 6>(packet, &verdict);
            TC_ACT_SHOT
        }
    }
}

/// The watched build notes the verdict. Each arm is another one, so that the compiler does not make one of what all begin with.
#[inline(always)]
fn noted<const KIND: u8, const ARM: u8>(packet: &Skb<KIND>, verdict: &Verdict) {
    #[cfg(feature = "watched")]
    {
        // SAFETY: writes a register that nobody reads.
        unsafe { core::arch::asm!("{0} = {1}", out(reg) _, const ARM, options(nomem, nostack)) };
        crate::watch::note(packet, verdict);
    }
    let _ = (packet, verdict);
}

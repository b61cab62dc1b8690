//! Carries out a verdict.

use aya_ebpf::bindings::{__sk_buff, BPF_F_INGRESS, TC_ACT_SHOT, TC_ACT_UNSPEC};
use aya_ebpf::helpers::generated::{bpf_redirect, bpf_redirect_peer};
use shunt_dataplane::{Delivery, Verdict, Way};

use crate::route;
use crate::skb::Skb;

/// Carries out `verdict` and returns the classifier's action.
///
/// The redirect helpers only record the target: the kernel redirects after the program, and drops silently what it cannot deliver.
/// Everything that can be checked has been checked.
#[inline(always)]
pub(crate) fn take<const KIND: u8>(packet: &Skb<KIND>, verdict: Verdict) -> i32 {
    said(packet.raw(), take_silently(packet, verdict))
}

/// The debug build logs the decision.
#[inline(always)]
pub(crate) fn said(skb: *mut __sk_buff, action: i32) -> i32 {
    #[cfg(feature = "decisions")]
    crate::decisions::say(skb);
    #[cfg(not(feature = "decisions"))]
    let _ = skb;
    action
}

/// The same for a subprogram: its program logs when it returns.
#[inline(always)]
pub(crate) fn take_silently<const KIND: u8>(packet: &Skb<KIND>, verdict: Verdict) -> i32 {
    #[cfg(feature = "decisions")]
    crate::decisions::record(packet, &verdict);
    #[cfg(not(feature = "decisions"))]
    let _ = packet;
    match verdict {
        // SAFETY: the helpers take numbers only.
        Verdict::Deliver(Delivery { ifindex, way: Way::Peer, .. }) => unsafe {
            bpf_redirect_peer(ifindex, 0) as i32
        },
        // SAFETY: as above.
        Verdict::Deliver(Delivery { ifindex, way: Way::Port, .. }) => unsafe {
            bpf_redirect(ifindex, 0) as i32
        },
        Verdict::Deliver(Delivery { ifindex, way: Way::Neighbor(next_hop), .. }) => {
            route::redirect(ifindex, next_hop)
        }
        // SAFETY: as above.
        Verdict::Deliver(Delivery { ifindex, way: Way::Wire | Way::Back, .. }) => unsafe {
            bpf_redirect(ifindex, 0) as i32
        },
        // SAFETY: as above.
        Verdict::Deliver(Delivery { ifindex, way: Way::Into, .. }) => unsafe {
            bpf_redirect(ifindex, u64::from(BPF_F_INGRESS)) as i32
        },
        Verdict::Pass(_) | Verdict::Deliver(Delivery { way: Way::Onward, .. }) => TC_ACT_UNSPEC,
        // The copies have been sent.
        Verdict::Drop(_) | Verdict::Flooded(_) => TC_ACT_SHOT,
    }
}

//! A verdict in the kernel's words.

use aya_ebpf::bindings::{__sk_buff, BPF_F_INGRESS, TC_ACT_SHOT, TC_ACT_UNSPEC};
use aya_ebpf::helpers::generated::{bpf_redirect, bpf_redirect_peer};
use shunt_dataplane::{Delivery, Verdict, Way};

use crate::context::Skb;
use crate::neighbor;

/// Does what `verdict` says and returns the action for the classifier to return.
///
/// The redirect helpers only note the target; the kernel acts on it after the program, and drops silently what it
/// cannot deliver. What can be checked has been checked by then.
#[inline(always)]
pub(crate) fn take<const KIND: u8>(packet: &Skb<KIND>, verdict: Verdict) -> i32 {
    said(packet.raw(), take_silently(packet, verdict))
}

/// The debug build says what was decided.
#[inline(always)]
pub(crate) fn said(skb: *mut __sk_buff, action: i32) -> i32 {
    #[cfg(feature = "decisions")]
    crate::decisions::say(skb);
    #[cfg(not(feature = "decisions"))]
    let _ = skb;
    action
}

/// The same for a function of a program, which says it itself when the function has returned.
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
            neighbor::redirect(ifindex, next_hop)
        }
        // SAFETY: as above.
        Verdict::Deliver(Delivery { ifindex, way: Way::Wire | Way::Back, .. }) => unsafe {
            bpf_redirect(ifindex, 0) as i32
        },
        // SAFETY: as above.
        Verdict::Deliver(Delivery { ifindex, way: Way::Into, .. }) => unsafe {
            bpf_redirect(ifindex, u64::from(BPF_F_INGRESS)) as i32
        },
        Verdict::Pass(_) => TC_ACT_UNSPEC,
        // The copies are on their way.
        Verdict::Drop(_) | Verdict::Flooded(_) => TC_ACT_SHOT,
    }
}

//! A change of SCTP's ports that its checksum has to make up for yet.
//!
//! What has rewritten a packet has no room on its stack for 16 multiplications of polynomials. So it leaves a note in the packet's
//! control block, which is the classifiers' own, and a function beside it reads that.

use aya_ebpf::bindings::__sk_buff;
use aya_ebpf::programs::TcContext;
use shunt_dataplane::wire::sctp::PortsMending;

use crate::context::Skb;

/// The words of `__sk_buff::cb`.
const PORTS: usize = 0;
const FIELD: usize = 1;
const HEADER: usize = 2;
/// Where the action waits meanwhile.
const ACTION: usize = 3;

/// See above.
pub(crate) struct PortsNote;

impl PortsNote {
    /// There is none. To be called first: somebody else's words may be there.
    #[inline(always)]
    pub(crate) fn clear(skb: *mut __sk_buff) {
        // SAFETY: the kernel hands every classifier a valid `__sk_buff`, whose control block it may write.
        unsafe { (*skb).cb[PORTS] = 0 };
    }

    #[inline(always)]
    pub(crate) fn leave(skb: *mut __sk_buff, mending: PortsMending) {
        // SAFETY: as in `clear`.
        unsafe {
            (*skb).cb[PORTS] = mending.ports;
            (*skb).cb[FIELD] = mending.field;
            (*skb).cb[HEADER] = mending.header;
        }
    }

    /// Whether there is one.
    #[inline(always)]
    pub(crate) fn is_there(skb: *mut __sk_buff) -> bool {
        // SAFETY: as in `clear`.
        unsafe { (*skb).cb[PORTS] != 0 }
    }

    /// Puts `action` by. Verifier: what comes back is any number, so whatever the action was, what follows is walked once.
    #[inline(always)]
    pub(crate) fn put_by(skb: *mut __sk_buff, action: i32) {
        // SAFETY: as in `clear`.
        unsafe { (&raw mut (*skb).cb[ACTION]).write_volatile(action.cast_unsigned()) };
    }

    /// What was put by.
    #[inline(always)]
    pub(crate) fn fetch(skb: *mut __sk_buff) -> i32 {
        // SAFETY: as in `clear`.
        unsafe { (&raw const (*skb).cb[ACTION]).read_volatile() }.cast_signed()
    }

    /// Does what it says. A redirect that was noted before this happens after it.
    #[inline(always)]
    pub(crate) fn heed(skb: *mut __sk_buff) {
        // SAFETY: as in `clear`.
        let (ports, field, header) = unsafe { ((*skb).cb[PORTS], (*skb).cb[FIELD], (*skb).cb[HEADER]) };
        let mending = PortsMending { header, field, ports };
        mending.make_good(&mut Skb::new(TcContext::new(skb)));
    }
}

//! An update of SCTP's checksum that is still to be done.
//!
//! The function that rewrites a packet has no room on its stack for 16 multiplications of polynomials. So it leaves a note in the packet's
//! control block, which belongs to the classifiers, and another function reads it.

use aya_ebpf::bindings::__sk_buff;
use aya_ebpf::programs::TcContext;
use shunt_dataplane::wire::packet::PortsUpdate;

use crate::skb::Skb;

/// The words of `__sk_buff::cb`.
const PORTS: usize = 0;
const FIELD: usize = 1;
const HEADER: usize = 2;
/// Where the action is stored meanwhile.
const ACTION: usize = 3;

/// See above.
pub(crate) struct SctpNote;

impl SctpNote {
    /// Clears the note. To be called first: another classifier's words may be there.
    #[inline(always)]
    pub(crate) fn clear(skb: *mut __sk_buff) {
        // SAFETY: the kernel hands every classifier a valid `__sk_buff`, whose control block it may write.
        unsafe { (*skb).cb[PORTS] = 0 };
    }

    #[inline(always)]
    pub(crate) fn leave(skb: *mut __sk_buff, update: PortsUpdate) {
        // SAFETY: as in `clear`.
        unsafe {
            (*skb).cb[PORTS] = update.ports;
            (*skb).cb[FIELD] = update.field;
            (*skb).cb[HEADER] = update.header;
        }
    }

    /// Whether there is one.
    #[inline(always)]
    pub(crate) fn is_there(skb: *mut __sk_buff) -> bool {
        // SAFETY: as in `clear`.
        unsafe { (*skb).cb[PORTS] != 0 }
    }

    /// Stores `action`. Verifier: what is loaded again is any number, so what follows is walked once, whatever the action was.
    #[inline(always)]
    pub(crate) fn put(skb: *mut __sk_buff, action: i32) {
        // SAFETY: as in `clear`.
        unsafe { (&raw mut (*skb).cb[ACTION]).write_volatile(action.cast_unsigned()) };
    }

    /// The stored action.
    #[inline(always)]
    pub(crate) fn fetch(skb: *mut __sk_buff) -> i32 {
        // SAFETY: as in `clear`.
        unsafe { (&raw const (*skb).cb[ACTION]).read_volatile() }.cast_signed()
    }

    /// Updates the checksum. A redirect that is noted already happens after it.
    #[inline(always)]
    pub(crate) fn apply(skb: *mut __sk_buff) {
        // SAFETY: as in `clear`.
        let (ports, field, header) = unsafe { ((*skb).cb[PORTS], (*skb).cb[FIELD], (*skb).cb[HEADER]) };
        let update = PortsUpdate { header, field, ports };
        update.apply(&mut Skb::new(TcContext::new(skb)));
    }
}

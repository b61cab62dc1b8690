//! A kernel's socket buffer as a [`Packet`].

use aya_ebpf::programs::TcContext;
use dataplane::packet::{Header, Packet, Tag};

/// `PACKET_HOST` of `linux/if_packet.h`.
const PACKET_HOST: u32 = 0;

/// The mark of a judged frame. It lives from `bpf_redirect` to the tc egress hook right behind it: netfilter never
/// sees it, and the veth's crossing into the container clears every mark.
const JUDGED_MARK: u32 = 0x7368_6e74;

/// No header is looked for further in; also what lets the verifier bound every pointer.
const MAX_OFFSET: u32 = 1024;

/// A frame in the kernel.
pub(crate) struct Skb {
    ctx: TcContext,
    own: bool,
}

impl Skb {
    #[inline(always)]
    pub(crate) fn new(ctx: TcContext) -> Self {
        Self { ctx, own: false }
    }

    /// The interface that the program runs on.
    #[inline(always)]
    pub(crate) fn ifindex(&self) -> u32 {
        // SAFETY: the kernel hands every classifier a valid `__sk_buff`.
        unsafe { (*self.ctx.skb.skb).ifindex }
    }

    /// Whether [`Packet::become_own`] was called.
    #[cfg(feature = "decisions")]
    #[inline(always)]
    pub(crate) fn is_own(&self) -> bool {
        self.own
    }
}

impl Packet for Skb {
    #[inline(always)]
    fn length(&self) -> u32 {
        self.ctx.len()
    }

    #[inline(always)]
    fn segment_size(&self) -> u32 {
        // SAFETY: as in `ifindex`.
        unsafe { (*self.ctx.skb.skb).gso_size }
    }

    #[inline(always)]
    fn origin(&self) -> u32 {
        // SAFETY: as in `ifindex`.
        unsafe { (*self.ctx.skb.skb).ingress_ifindex }
    }

    #[inline(always)]
    fn tag(&self) -> Option<Tag> {
        // SAFETY: as in `ifindex`.
        let (present, tci) = unsafe { ((*self.ctx.skb.skb).vlan_present, (*self.ctx.skb.skb).vlan_tci) };
        (present != 0).then_some(Tag { tci: tci as u16 })
    }

    #[inline(always)]
    fn load<T: Header>(&self, offset: u32) -> Option<T> {
        const { T::FITS };
        // Verifier: a bound on the variable part of a packet pointer before it is added.
        if offset > MAX_OFFSET {
            return None;
        }
        let start = self.ctx.data() + offset as usize;
        if start + size_of::<T>() > self.ctx.data_end() {
            return None;
        }
        // SAFETY: it lies between data and data_end, any bytes make a `T`, and a frame's even address and our even
        // offsets are all the alignment that a `T` may want.
        Some(unsafe { *(start as *const T) })
    }

    #[inline(always)]
    fn linearize(&mut self, bytes: u32) -> bool {
        let length = self.length();
        self.ctx.pull_data(if bytes < length { bytes } else { length }).is_ok()
    }

    #[inline(always)]
    fn become_own(&mut self) {
        // Fails for no type that a received frame can have, and then there is nothing better to do.
        let _ = self.ctx.skb.change_type(PACKET_HOST);
        self.own = true;
    }

    #[inline(always)]
    fn mark_judged(&mut self) {
        self.ctx.set_mark(JUDGED_MARK);
    }

    #[inline(always)]
    fn take_judged(&mut self) -> bool {
        // SAFETY: as in `ifindex`.
        let judged = unsafe { (*self.ctx.skb.skb).mark } == JUDGED_MARK;
        if judged {
            self.ctx.set_mark(0);
        }
        judged
    }
}

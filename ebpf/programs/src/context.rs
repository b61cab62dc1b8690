//! A kernel's socket buffer as a [`Packet`].

use aya_ebpf::bindings::{
    __sk_buff, BPF_F_INGRESS, BPF_F_MARK_MANGLED_0, BPF_F_PSEUDO_HDR, BPF_F_RECOMPUTE_CSUM,
};
use aya_ebpf::helpers::generated::{
    bpf_csum_update, bpf_l4_csum_replace, bpf_skb_change_head, bpf_skb_store_bytes, bpf_skb_vlan_pop,
    bpf_skb_vlan_push,
};
use aya_ebpf::programs::TcContext;
use shunt_dataplane::wire::EthernetHeader;
use shunt_dataplane::wire::address::Mac;
use shunt_dataplane::wire::checksum::Change;
use shunt_dataplane::wire::packet::{Header, Mending, Packet, Readable, Tag};
use shunt_dataplane::wire::sctp::PortsMending;
use zerocopy::IntoBytes;

use crate::enclosing;
use crate::ports_note::PortsNote;

/// `PACKET_HOST` of `linux/if_packet.h`.
const PACKET_HOST: u32 = 0;

/// The mark of a judged frame. It lives from `bpf_redirect` to the tc egress hook right behind it: netfilter never
/// sees it, and the veth's crossing into the container clears every mark.
const JUDGED_MARK: u32 = 0x7368_6e74;

/// The bit of the mark by which a restricted port's guard knows a checked frame; the rest of the mark may be an operator's. It is
/// not among those of [`JUDGED_MARK`].
const CHECKED: u32 = 0x0800_0000;

/// Tag protocols as they are on the wire.
const VLAN: u16 = 0x8100_u16.to_be();
const SERVICE_VLAN: u16 = 0x88a8_u16.to_be();

/// The word of `__sk_buff::cb` by which a number is forgotten; those in front of it are [`PortsNote`]'s.
const FORGOTTEN: usize = 4;

/// No header is looked for further in; also what lets the verifier bound every pointer.
const MAX_OFFSET: u32 = 1024;

/// The same offset, at most [`MAX_OFFSET`], in words that the verifier understands. It believes what was compared of the register
/// that was compared; where the compiler takes the offset from the stack once to compare it and once to add it, Linux 6.1
/// refuses the sum.
#[inline(always)]
fn bounded(offset: u32) -> usize {
    let mut bounded = u64::from(offset);
    // SAFETY: touches one register, and changes nothing in it that is not above the bound.
    unsafe { core::arch::asm!("{0} &= 2047", inout(reg) bounded, options(pure, nomem, nostack)) };
    bounded as usize
}

/// Of the const parameter of [`Skb`]: frames, and packets that come in without an Ethernet header.
pub(crate) const FRAMED: u8 = 0;
pub(crate) const BARE: u8 = 1;

/// A bare packet of a test run: `BPF_PROG_TEST_RUN` makes frames only, so there is a header, which is not looked at.
#[cfg(feature = "decisions")]
pub(crate) const TESTED: u8 = 2;

/// Bytes of an Ethernet header, and where in it the type is.
const ETHERNET_BYTES: u32 = 14;
const ETHER_TYPE: u32 = 12;

/// A frame in the kernel, or a bare packet.
pub(crate) struct Skb<const KIND: u8 = FRAMED> {
    ctx: TcContext,
    /// The bytes of an Ethernet header that are not there: of a bare packet, until it is given one.
    lacks: u32,
    own: bool,
    #[cfg(feature = "decisions")]
    copies: u32,
    #[cfg(feature = "decisions")]
    digest: u32,
}

impl Skb {
    #[inline(always)]
    pub(crate) fn new(ctx: TcContext) -> Self {
        Self::of(ctx)
    }
}

impl<const KIND: u8> Skb<KIND> {
    /// The packet of either kind.
    #[inline(always)]
    pub(crate) fn of(ctx: TcContext) -> Self {
        Self {
            ctx,
            lacks: if KIND == BARE { ETHERNET_BYTES } else { 0 },
            own: false,
            #[cfg(feature = "decisions")]
            copies: 0,
            #[cfg(feature = "decisions")]
            digest: 0,
        }
    }

    /// Where an offset of the frame is in what is there of it; beyond everything where that is not there.
    #[inline(always)]
    fn place(&self, offset: u32) -> u32 {
        if KIND != FRAMED { offset.wrapping_sub(self.lacks) } else { offset }
    }

    /// What it carries, in network order.
    #[inline(always)]
    fn protocol(&self) -> u16 {
        // SAFETY: as in `ifindex`.
        unsafe { (*self.ctx.skb.skb).protocol as u16 }
    }

    /// The interface that the program runs on.
    #[inline(always)]
    pub(crate) fn ifindex(&self) -> u32 {
        // SAFETY: the kernel hands every classifier a valid `__sk_buff`.
        unsafe { (*self.ctx.skb.skb).ifindex }
    }

    #[inline(always)]
    fn mark(&self) -> u32 {
        // SAFETY: as in `ifindex`.
        unsafe { (*self.ctx.skb.skb).mark }
    }

    /// The context, for helpers that want it beside the packet.
    #[inline(always)]
    pub(crate) fn raw(&self) -> *mut __sk_buff {
        self.ctx.skb.skb
    }

    /// The debug build remembers where copies go.
    #[inline(always)]
    fn note_copy(&mut self, ifindex: u32) {
        #[cfg(feature = "decisions")]
        {
            let tag = self.tag().map_or(0, |tag| u32::from(tag.tci()) | 1 << 16);
            self.copies += 1;
            self.digest = self.digest.wrapping_add(ifindex.wrapping_add(tag).wrapping_mul(self.copies));
        }
        #[cfg(not(feature = "decisions"))]
        let _ = ifindex;
    }

    /// See [`shunt_dataplane::abi::Decision::copies`].
    #[cfg(feature = "decisions")]
    #[inline(always)]
    pub(crate) fn digest(&self) -> u32 {
        self.digest
    }

    /// Whether [`Packet::become_own`] was called.
    #[cfg(feature = "decisions")]
    #[inline(always)]
    pub(crate) fn is_own(&self) -> bool {
        self.own
    }
}

impl<const KIND: u8> Readable for Skb<KIND> {
    #[inline(always)]
    fn ethernet(&self) -> Option<EthernetHeader> {
        if KIND != FRAMED {
            let (destination, source) = (Mac::default(), Mac::default());
            return Some(EthernetHeader { destination, source, ether_type: self.protocol() });
        }
        self.load(0)
    }

    #[inline(always)]
    fn is_bare(&self) -> bool {
        KIND != FRAMED
    }

    #[inline(always)]
    fn length(&self) -> u32 {
        self.ctx.len() + if KIND != FRAMED { self.lacks } else { 0 }
    }

    #[inline(always)]
    fn tag(&self) -> Option<Tag> {
        // SAFETY: as in `ifindex`.
        let (present, tci, protocol) = unsafe {
            let skb = &*self.ctx.skb.skb;
            (skb.vlan_present, skb.vlan_tci, skb.vlan_proto)
        };
        let (tci, service) = (tci as u16, protocol as u16 == SERVICE_VLAN);
        (present != 0).then(|| if service { Tag::service(tci) } else { Tag::customer(tci) })
    }

    #[inline(always)]
    fn load<T: Header>(&self, offset: u32) -> Option<T> {
        const { T::FITS };
        let offset = self.place(offset);
        // Verifier: a bound on the variable part of a packet pointer before it is added.
        if offset > MAX_OFFSET {
            return None;
        }
        // Verifier: the compiler compares the offset of the frame and adds that of the bare packet.
        let start = self.ctx.data() + if KIND != FRAMED { bounded(offset) } else { offset as usize };
        if start + size_of::<T>() > self.ctx.data_end() {
            return None;
        }
        // SAFETY: it lies between data and data_end, any bytes make a `T`, and a frame's even address and our even
        // offsets are all the alignment that a `T` may want.
        Some(unsafe { *(start as *const T) })
    }
}

impl<const KIND: u8> Packet for Skb<KIND> {
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
    fn linearize(&mut self, bytes: u32) -> bool {
        let (bytes, length) = (self.place(bytes), self.ctx.len());
        self.ctx.pull_data(if bytes < length { bytes } else { length }).is_ok()
    }

    #[inline(always)]
    fn is_for_this_host(&self) -> bool {
        // SAFETY: as in `ifindex`.
        unsafe { (*self.ctx.skb.skb).pkt_type == PACKET_HOST }
    }

    #[inline(always)]
    fn edit<T: Header + IntoBytes>(&mut self, offset: u32, edit: impl FnOnce(&mut T)) {
        const { T::FITS };
        let offset = self.place(offset);
        // Verifier: a check of its own. One that a load and a store share is one the compiler may move between them.
        if offset > MAX_OFFSET {
            return;
        }
        let start = self.ctx.data() + bounded(offset);
        if start + size_of::<T>() > self.ctx.data_end() {
            return;
        }
        // SAFETY: as in `load`; nobody else has a reference into the packet.
        edit(unsafe { &mut *(start as *mut T) });
    }

    #[inline(always)]
    fn address(&mut self, destination: Mac, source: Mac) -> bool {
        if KIND != FRAMED {
            if self.lacks != 0 {
                // SAFETY: the context is the program's own. Every pointer into the packet is invalid afterwards, as in `pop_tag`.
                if unsafe { bpf_skb_change_head(self.ctx.skb.skb, ETHERNET_BYTES, 0) } != 0 {
                    return false;
                }
                self.lacks = 0;
            }
            let protocol = self.protocol();
            self.edit(ETHER_TYPE, |ether_type: &mut u16| *ether_type = protocol);
        }
        self.edit(0, |ends: &mut [Mac; 2]| *ends = [destination, source]);
        true
    }

    /// With the kernel's helper, for a program that only ever writes so has no check for copies in front of all packets
    /// (`bpf_unclone_prologue`, net/core/filter.c).
    #[inline(always)]
    fn store<T: Header + IntoBytes>(&mut self, offset: u32, header: &T) -> bool {
        const { T::FITS };
        let (from, bytes) = ((&raw const *header).cast(), size_of::<T>() as u32);
        let (at, flags) = (self.place(offset), u64::from(BPF_F_RECOMPUTE_CSUM));
        // SAFETY: the context is the program's own, and `from` points to as many bytes, all of them written.
        unsafe { bpf_skb_store_bytes(self.ctx.skb.skb, at, from, bytes, flags) == 0 }
    }

    #[inline(always)]
    fn mend(&mut self, mending: Mending) {
        let Mending { field, optional, alone, addresses, ports, header } = mending;
        let field = self.place(field);
        let flags = if optional { u64::from(BPF_F_MARK_MANGLED_0) } else { 0 };
        let skb = self.ctx.skb.skb;
        // SAFETY: the context is the program's own. The helpers fail for a field outside the packet only, and it was read.
        unsafe {
            let pseudo = flags | u64::from(BPF_F_PSEUDO_HDR);
            bpf_l4_csum_replace(skb, field, 0, u64::from(addresses.difference()), pseudo);
            bpf_l4_csum_replace(skb, field, 0, u64::from(ports.difference()), flags);
            if alone {
                // Of a packet that the device has summed (`CHECKSUM_COMPLETE`) the kernel takes the addresses' change to
                // be made up for by a header checksum, which IPv6 has not. Says nothing of any other packet.
                bpf_csum_update(skb, addresses.and(header).difference());
            }
        }
    }

    #[inline(always)]
    fn forget(&self, number: u32) -> u32 {
        // SAFETY: as in `ifindex`; the control block is the classifiers' own.
        unsafe {
            let word = &raw mut (*self.ctx.skb.skb).cb[FORGOTTEN];
            word.write_volatile(number);
            word.read_volatile()
        }
    }

    /// Notes it only: the stack has no room for it here. See [`PortsNote`].
    #[inline(always)]
    fn mend_ports(&mut self, mending: PortsMending) {
        PortsNote::leave(self.ctx.skb.skb, mending);
    }

    /// By the same word, of which nothing is to be forgotten any more.
    #[inline(always)]
    fn leave_note(&mut self, number: u32) {
        self.forget(number);
    }

    fn note(&self) -> u32 {
        // SAFETY: as in `forget`.
        unsafe { (*self.ctx.skb.skb).cb[FORGOTTEN] }
    }

    #[inline(always)]
    fn enclose(&mut self, above: u32, pieces: u32, past: u32) -> Option<Change> {
        enclosing::enclose(self.ctx.skb.skb, self.lacks, [above, pieces, past])
    }

    #[inline(always)]
    fn tell_sum(&mut self, change: Change) {
        // SAFETY: the context is the program's own.
        unsafe { bpf_csum_update(self.ctx.skb.skb, change.difference()) };
    }

    #[inline(always)]
    fn pop_tag(&mut self) -> bool {
        // SAFETY: as in `ifindex`. Every pointer into the frame is invalid afterwards; `load` makes its own each time.
        unsafe { bpf_skb_vlan_pop(self.ctx.skb.skb) == 0 }
    }

    #[inline(always)]
    fn push_tag(&mut self, tci: u16) -> bool {
        // SAFETY: as in `pop_tag`.
        unsafe { bpf_skb_vlan_push(self.ctx.skb.skb, VLAN, tci) == 0 }
    }

    #[inline(always)]
    fn copy_to(&mut self, ifindex: u32) -> bool {
        self.note_copy(ifindex);
        self.ctx.skb.clone_redirect(ifindex, 0).is_ok()
    }

    /// The copy waits in this CPU's backlog until this frame is through, and is the host's own if the interface has its address
    /// (`eth_type_trans`).
    #[inline(always)]
    fn copy_in(&mut self, ifindex: u32) {
        self.note_copy(ifindex);
        // Without memory for it nobody there hears of it, as if the network had lost it.
        let _ = self.ctx.skb.clone_redirect(ifindex, u64::from(BPF_F_INGRESS));
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
        let judged = self.mark() == JUDGED_MARK;
        if judged {
            self.ctx.set_mark(0);
        }
        judged
    }

    #[inline(always)]
    fn mark_checked(&mut self) {
        self.ctx.set_mark(self.mark() | CHECKED);
    }

    #[inline(always)]
    fn is_checked(&self) -> bool {
        self.mark() & CHECKED != 0
    }

    #[inline(always)]
    fn take_checked(&mut self) -> bool {
        let mark = self.mark();
        self.ctx.set_mark(mark & !CHECKED);
        mark & CHECKED != 0
    }
}

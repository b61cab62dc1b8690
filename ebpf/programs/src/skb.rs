//! A kernel's socket buffer as a packet.

mod packet;

use aya_ebpf::bindings::__sk_buff;
use aya_ebpf::programs::TcContext;
use shunt_dataplane::abi::Marks;
use shunt_dataplane::wire::EthernetHeader;
use shunt_dataplane::wire::address::Mac;
use shunt_dataplane::wire::packet::{Header, Readable, Tag};

use crate::maps::MARKS;

/// `PACKET_HOST` of `linux/if_packet.h`.
const PACKET_HOST: u32 = 0;

/// The bits of the mark that are ours. Where the map had none, no frame would be judged or checked.
#[inline(always)]
fn marks() -> Marks {
    MARKS.get(0).copied().unwrap_or_default()
}

/// Tag protocols as they are on the wire.
const VLAN: u16 = 0x8100_u16.to_be();
const SERVICE_VLAN: u16 = 0x88a8_u16.to_be();

/// The word of `__sk_buff::cb` by which a number is forgotten; those in front of it are [`SctpNote`]'s.
const FORGOTTEN: usize = 4;

/// No header is looked for further in; also what lets the verifier bound every pointer.
const MAX_OFFSET: u32 = 1024;

/// The same offset, at most [`MAX_OFFSET`], bounded for the verifier: it learns a bound for the compared register only. Where the
/// compiler loads the offset from the stack once to compare it and once to add it, Linux 6.1 rejects the sum.
#[inline(always)]
fn bounded(offset: u32) -> usize {
    let mut bounded = u64::from(offset);
    // SAFETY: touches one register, and changes nothing in it that is not above the bound.
    unsafe { core::arch::asm!("{0} &= 2047", inout(reg) bounded, options(pure, nomem, nostack)) };
    bounded as usize
}

/// The const parameter of [`Skb`]: frames, and packets without an Ethernet header.
pub(crate) const FRAMED: u8 = 0;
pub(crate) const BARE: u8 = 1;

/// A bare packet of a test run: `BPF_PROG_TEST_RUN` makes frames only, so there is a header, which is not read.
#[cfg(feature = "decisions")]
pub(crate) const TESTED: u8 = 2;

/// Bytes of an Ethernet header, and where in it the type is.
const ETHERNET_BYTES: u32 = 14;
const ETHER_TYPE: u32 = 12;

/// A frame in the kernel, or a bare packet.
pub(crate) struct Skb<const KIND: u8 = FRAMED> {
    ctx: TcContext,
    /// The bytes of an Ethernet header that are missing: of a bare packet, until it gets one.
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

    /// An offset of the frame as one of the data; beyond the data where the header is missing.
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

    /// Takes a bit off the mark; whether it was there.
    #[inline(always)]
    fn take(&mut self, bit: u32) -> bool {
        let mark = self.mark();
        if mark & bit != 0 {
            self.ctx.set_mark(mark & !bit);
        }
        mark & bit != 0
    }

    /// Whether its bytes begin with the IP header.
    #[cfg(feature = "watched")]
    #[inline(always)]
    pub(crate) fn is_headless(&self) -> bool {
        KIND == BARE && self.lacks != 0
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

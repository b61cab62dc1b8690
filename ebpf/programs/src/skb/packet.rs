//! Edits of a socket buffer.

use aya_ebpf::bindings::{BPF_F_INGRESS, BPF_F_MARK_MANGLED_0, BPF_F_PSEUDO_HDR, BPF_F_RECOMPUTE_CSUM};
use aya_ebpf::helpers::generated::{
    bpf_csum_update, bpf_l4_csum_replace, bpf_skb_change_head, bpf_skb_store_bytes, bpf_skb_vlan_pop,
    bpf_skb_vlan_push,
};
use shunt_dataplane::abi::Marks;
use shunt_dataplane::wire::address::Mac;
use shunt_dataplane::wire::checksum::Change;

use shunt_dataplane::wire::packet::{ChecksumUpdate, Header, Packet, PortsUpdate};
use zerocopy::IntoBytes;

use super::{
    ETHER_TYPE, ETHERNET_BYTES, FORGOTTEN, FRAMED, MAX_OFFSET, PACKET_HOST, Skb, VLAN, bounded, marks,
};
use crate::embed;
use crate::sctp_note::SctpNote;

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

    /// With the kernel's helper: a program that writes only so has no check for clones in front of every packet
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
    fn update_checksum(&mut self, update: ChecksumUpdate) {
        let ChecksumUpdate { field, optional, alone, addresses, ports, header } = update;
        let field = self.place(field);
        let flags = if optional { u64::from(BPF_F_MARK_MANGLED_0) } else { 0 };
        let skb = self.ctx.skb.skb;
        // SAFETY: the context is the program's own. The helpers fail for a field outside the packet only, and it was read.
        unsafe {
            let pseudo = flags | u64::from(BPF_F_PSEUDO_HDR);
            bpf_l4_csum_replace(skb, field, 0, u64::from(addresses.difference()), pseudo);
            bpf_l4_csum_replace(skb, field, 0, u64::from(ports.difference()), flags);
            if alone {
                // For a packet that the device has summed (`CHECKSUM_COMPLETE`) the kernel expects a header checksum to
                // cancel the addresses' change; IPv6 has none. No effect on other packets.
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

    /// Leaves a note only: the stack has no room for the update here. See [`SctpNote`].
    #[inline(always)]
    fn update_sctp_checksum(&mut self, update: PortsUpdate) {
        SctpNote::leave(self.ctx.skb.skb, update);
    }

    /// In the same word: nothing is forgotten any more.
    #[inline(always)]
    fn leave_note(&mut self, number: u32) {
        self.forget(number);
    }

    fn note(&self) -> u32 {
        // SAFETY: as in `forget`.
        unsafe { (*self.ctx.skb.skb).cb[FORGOTTEN] }
    }

    #[inline(always)]
    fn embed(&mut self, above: u32, pieces: u32, past: u32) -> Option<Change> {
        embed::embed(self.ctx.skb.skb, self.lacks, [above, pieces, past])
    }

    #[inline(always)]
    fn adjust_sum(&mut self, change: Change) {
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

    /// The clone waits in this CPU's backlog until this frame is done, and is the host's own if the interface has its address
    /// (`eth_type_trans`).
    #[inline(always)]
    fn copy_in(&mut self, ifindex: u32) {
        self.note_copy(ifindex);
        // Without memory the clone is lost, as on the network.
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
        let Marks { judged, checked, outside } = marks();
        self.ctx.set_mark(self.mark() & !(checked | outside) | judged);
    }

    #[inline(always)]
    fn take_judged(&mut self) -> bool {
        self.take(marks().judged)
    }

    #[inline(always)]
    fn mark_outside(&mut self) {
        self.ctx.set_mark(self.mark() | marks().outside);
    }

    #[inline(always)]
    fn is_outside(&self) -> bool {
        self.mark() & marks().outside != 0
    }

    #[inline(always)]
    fn unmark_outside(&mut self) {
        let _ = self.take(marks().outside);
    }

    #[inline(always)]
    fn is_marked_by_others(&self) -> bool {
        let Marks { judged, checked, outside } = marks();
        self.mark() & !(judged | checked | outside) != 0
    }

    #[inline(always)]
    fn mark_checked(&mut self) {
        self.ctx.set_mark(self.mark() | marks().checked);
    }

    #[inline(always)]
    fn is_checked(&self) -> bool {
        self.mark() & marks().checked != 0
    }

    #[inline(always)]
    fn take_checked(&mut self) -> bool {
        self.take(marks().checked)
    }
}

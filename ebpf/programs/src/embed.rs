//! A packet becomes one that embeds it.

use aya_ebpf::bindings::bpf_adj_room_mode::BPF_ADJ_ROOM_MAC;
use aya_ebpf::bindings::{__sk_buff, BPF_F_INVALIDATE_HASH};
use aya_ebpf::helpers::generated::{
    bpf_csum_diff, bpf_skb_adjust_room, bpf_skb_change_tail, bpf_skb_load_bytes, bpf_skb_store_bytes,
};
use shunt_dataplane::wire::checksum::Change;
use shunt_dataplane::wire::packet::{PIECE_BYTES, Piece};

const ETHERNET_BYTES: u32 = 14;

/// See [`shunt_dataplane::Packet::embed`], of a packet that `lacks` so many bytes of an Ethernet header.
///
/// Cuts the end, then behind the Ethernet header, where nothing is left that is embedded. The second cut also removes the header from
/// which a device was to compute a checksum (`CHECKSUM_PARTIAL`), and with it the order, which would corrupt the embedded packet
/// (`skb_postpull_rcsum`; Linux 54c3f1a81421).
#[inline(always)]
pub(crate) fn embed(skb: *mut __sk_buff, lacks: u32, [above, pieces, past]: [u32; 3]) -> Option<Change> {
    let (inner, above) = (ETHERNET_BYTES - lacks, above - lacks);
    let mut piece: Piece = [0; 8];
    let bytes: *mut Piece = &raw mut piece;
    let flags = u64::from(BPF_F_INVALIDATE_HASH);
    let mut sum = 0;
    // SAFETY: the context is the program's own, and each pointer is to as many bytes.
    unsafe {
        if bpf_skb_change_tail(skb, past + above + pieces * PIECE_BYTES, 0) != 0 {
            return None;
        }
        for at in (0..pieces).map(|number| number * PIECE_BYTES) {
            let to = past + above + at;
            if bpf_skb_load_bytes(skb.cast(), inner + at, bytes.cast(), PIECE_BYTES) != 0
                || bpf_skb_store_bytes(skb, to, bytes.cast(), PIECE_BYTES, flags) != 0
            {
                return None;
            }
            sum = bpf_csum_diff(core::ptr::null_mut(), 0, bytes.cast(), PIECE_BYTES, sum) as u32;
        }
        let cut = bpf_skb_adjust_room(skb, -past.cast_signed(), BPF_ADJ_ROOM_MAC, 0);
        (cut == 0).then_some(Change::sum(sum))
    }
}

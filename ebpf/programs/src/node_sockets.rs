//! The node's own sockets.

use aya_ebpf::bindings::{__sk_buff, BPF_F_CURRENT_NETNS, bpf_sock_tuple as SocketTuple};
use aya_ebpf::helpers::generated::{bpf_sk_lookup_udp, bpf_sk_release, bpf_skc_lookup_tcp};
use shunt_dataplane::abi::translation::TupleKey;
use shunt_dataplane::wire::Protocol;

/// Bytes of the two kinds of `struct bpf_sock_tuple`: addresses and ports.
const V4_BYTES: u32 = 12;
const V6_BYTES: u32 = 36;

/// Whether one of them would receive the reply to a packet with this tuple, in the packet's namespace.
#[inline(always)]
pub(crate) fn would_receive(skb: *mut __sk_buff, tuple: &TupleKey) -> bool {
    // SAFETY: it consists of unions of integers, for which zeros are values.
    let mut answer: SocketTuple = unsafe { core::mem::zeroed() };
    let bytes = if tuple.source.is_v4() {
        answer.__bindgen_anon_1.ipv4.saddr = tuple.destination.words()[3];
        answer.__bindgen_anon_1.ipv4.daddr = tuple.source.words()[3];
        answer.__bindgen_anon_1.ipv4.sport = tuple.destination_port.half();
        answer.__bindgen_anon_1.ipv4.dport = tuple.source_port.half();
        V4_BYTES
    } else {
        answer.__bindgen_anon_1.ipv6.saddr = tuple.destination.words();
        answer.__bindgen_anon_1.ipv6.daddr = tuple.source.words();
        answer.__bindgen_anon_1.ipv6.sport = tuple.destination_port.half();
        answer.__bindgen_anon_1.ipv6.dport = tuple.source_port.half();
        V6_BYTES
    };
    let (context, netns) = (skb.cast(), BPF_F_CURRENT_NETNS as i64 as u64);
    // SAFETY: the context is the program's own, `answer` has that many bytes, and what is found is given back once.
    unsafe {
        let socket = if tuple.protocol == Protocol::TCP.0 {
            bpf_skc_lookup_tcp(context, &raw mut answer, bytes, netns, 0).cast()
        } else {
            bpf_sk_lookup_udp(context, &raw mut answer, bytes, netns, 0)
        };
        if socket.is_null() {
            return false;
        }
        bpf_sk_release(socket.cast());
    }
    true
}

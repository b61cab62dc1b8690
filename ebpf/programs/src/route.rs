//! The kernel's routes and neighbours.

use aya_ebpf::bindings::{
    BPF_FIB_LKUP_RET_FRAG_NEEDED, BPF_FIB_LKUP_RET_NO_NEIGH, BPF_FIB_LKUP_RET_SUCCESS,
    bpf_fib_lookup as FibLookup, bpf_redir_neigh as NextHop,
};
use aya_ebpf::helpers::generated::{bpf_fib_lookup, bpf_redirect_neigh};
use shunt_dataplane::tables::{Route, RouteQuery, Unrouted};
use shunt_dataplane::wire::address::Address;

/// Address families of `linux/socket.h`.
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;

/// Looks up the FIB as if the packet came in by `query.from`. An unresolved neighbour is no error: the sender resolves it.
#[inline(always)]
pub(crate) fn route(skb: *mut aya_ebpf::bindings::__sk_buff, query: &RouteQuery) -> Result<Route, Unrouted> {
    // SAFETY: it consists of integers and unions of integers, for which zeros are values.
    let mut fib: FibLookup = unsafe { core::mem::zeroed() };
    fib.ifindex = query.from;
    fib.__bindgen_anon_1.tot_len = query.bytes;
    if query.source.is_v4() {
        fib.family = AF_INET;
        fib.__bindgen_anon_3.ipv4_src = query.source.words()[3];
        fib.__bindgen_anon_4.ipv4_dst = query.destination.words()[3];
    } else {
        fib.family = AF_INET6;
        fib.__bindgen_anon_3.ipv6_src = query.source.words();
        fib.__bindgen_anon_4.ipv6_dst = query.destination.words();
    }
    // SAFETY: the context is the program's own, and the size is that of what the pointer is to.
    let found = unsafe { bpf_fib_lookup(skb.cast(), &raw mut fib, size_of::<FibLookup>() as i32, 0) };
    if found == i64::from(BPF_FIB_LKUP_RET_FRAG_NEEDED) {
        // SAFETY: an integer, which the kernel has written.
        return Err(Unrouted::TooBig(unsafe { fib.__bindgen_anon_1.mtu_result }));
    }
    if found != i64::from(BPF_FIB_LKUP_RET_SUCCESS) && found != i64::from(BPF_FIB_LKUP_RET_NO_NEIGH) {
        return Err(Unrouted::NoRoute);
    }
    // SAFETY: every member of the union is integers, and the kernel has written the family that it says.
    let next_hop = unsafe {
        if fib.family == AF_INET {
            Address::from_v4_word(fib.__bindgen_anon_4.ipv4_dst)
        } else {
            Address::from_v6_words(fib.__bindgen_anon_4.ipv6_dst)
        }
    };
    Ok(Route { ifindex: fib.ifindex, next_hop })
}

/// Sends the packet out of `ifindex` to the neighbour with this address.
#[inline(always)]
pub(crate) fn redirect(ifindex: u32, next_hop: Address) -> i32 {
    // SAFETY: as in `route`.
    let mut to: NextHop = unsafe { core::mem::zeroed() };
    if next_hop.is_v4() {
        to.nh_family = u32::from(AF_INET);
        to.__bindgen_anon_1.ipv4_nh = next_hop.words()[3];
    } else {
        to.nh_family = u32::from(AF_INET6);
        to.__bindgen_anon_1.ipv6_nh = next_hop.words();
    }
    // SAFETY: the size is that of what the pointer is to, and the helper copies it.
    unsafe { bpf_redirect_neigh(ifindex, &raw mut to, size_of::<NextHop>() as i32, 0) as i32 }
}

//! Programs on sockets: redirect what the node's processes connect or send to host ports, and report the host port as the peer.
//!
//! They are attached to a cgroup, which may hold processes of any network namespace, also of other nodes on the machine. So each of
//! them first compares the namespace's cookie.

use aya_ebpf::Global;
use aya_ebpf::bindings::bpf_sock_addr;
use aya_ebpf::helpers::generated::{bpf_get_netns_cookie, bpf_get_socket_cookie};
use aya_ebpf::macros::cgroup_sock_addr;
use aya_ebpf::programs::SockAddrContext;
use shunt_dataplane::abi::translation::{Peer, PeerKey};
use shunt_dataplane::nat::alias::{self, Asker};
use shunt_dataplane::nat::connect::{Target, leads_by};
use shunt_dataplane::nat::dnat;
use shunt_dataplane::wire::Protocol;
use shunt_dataplane::wire::address::{Address, L4Port};

use crate::kernel_tables::KernelTables;
use crate::peers;

/// The cookie of the node's network namespace (`SO_NETNS_COOKIE`, Linux 5.14). The agent sets it when it loads the
/// programs; 0 is no namespace's.
#[used]
#[unsafe(no_mangle)]
static NETNS: Global<u64> = Global::new(0);

/// What a socket of the node does.
#[derive(Clone, Copy)]
enum Call {
    /// It connects: it has one peer from now on.
    Connect,
    /// It sends a datagram without being connected, or to somebody else.
    Send,
}

/// The system call goes on.
const GO_ON: i32 = 1;

/// A socket connects over IPv4.
#[cgroup_sock_addr(connect4)]
pub(crate) fn connect4(ctx: SockAddrContext) -> i32 {
    redirect::<V4>(ctx.sock_addr, Call::Connect)
}

/// An IPv6 socket connects, over either version.
#[cgroup_sock_addr(connect6)]
pub(crate) fn connect6(ctx: SockAddrContext) -> i32 {
    redirect::<V6>(ctx.sock_addr, Call::Connect)
}

/// An unconnected UDP socket sends over IPv4.
#[cgroup_sock_addr(sendmsg4)]
pub(crate) fn sendmsg4(ctx: SockAddrContext) -> i32 {
    redirect::<V4>(ctx.sock_addr, Call::Send)
}

/// An unconnected UDP socket sends over IPv6.
#[cgroup_sock_addr(sendmsg6)]
pub(crate) fn sendmsg6(ctx: SockAddrContext) -> i32 {
    redirect::<V6>(ctx.sock_addr, Call::Send)
}

/// The source of a datagram received over IPv4 is reported.
#[cgroup_sock_addr(recvmsg4)]
pub(crate) fn recvmsg4(ctx: SockAddrContext) -> i32 {
    report::<V4>(ctx.sock_addr)
}

/// The source of a datagram received by an IPv6 socket is reported.
#[cgroup_sock_addr(recvmsg6)]
pub(crate) fn recvmsg6(ctx: SockAddrContext) -> i32 {
    report::<V6>(ctx.sock_addr)
}

/// The peer of a socket connected over IPv4 is reported.
#[cgroup_sock_addr(getpeername4)]
pub(crate) fn getpeername4(ctx: SockAddrContext) -> i32 {
    report::<V4>(ctx.sock_addr)
}

/// The peer of a connected IPv6 socket is reported.
#[cgroup_sock_addr(getpeername6)]
pub(crate) fn getpeername6(ctx: SockAddrContext) -> i32 {
    report::<V6>(ctx.sock_addr)
}

/// Redirects a socket from a host port to its container, and records the host port.
#[inline(always)]
fn redirect<F: Family>(asked: *mut bpf_sock_addr, call: Call) -> i32 {
    if !is_nodes(asked) {
        return GO_ON;
    }
    // SAFETY: `asked` is the program's context.
    let (address, port, bound) = unsafe { (F::address(asked), port(asked), F::bound(asked)) };
    // SAFETY: as above.
    let protocol = unsafe { (*asked).protocol } as u8;
    let target = Target { address, port, protocol };
    let tables = KernelTables::of_socket(asked);
    if let Some((to, mapping)) = leads_by(&target, bound, &tables) {
        let alias = match call {
            // To a VLAN the node sends tagged frames, whose ports nobody writes.
            Call::Send if mapping.vid == 0 && has_other_name(asked, &to, &target) => {
                let asker = Asker {
                    socket: cookie(asked),
                    port: own_port(asked),
                    source: if bound.is_unspecified() {
                        dnat::source(mapping.bridge, to.address, address, &tables)
                    } else {
                        bound
                    },
                    name: address,
                    name_port: port,
                };
                alias::claim(&asker, &to, &tables)
            }
            _ => None,
        };
        if alias.is_none() {
            let is_lasting = matches!(call, Call::Connect) && protocol == Protocol::UDP.0;
            peers::record(&key(asked, to.address, to.port), &Peer { address, port, pad: [0; 2] }, is_lasting);
        }
        // SAFETY: as above.
        unsafe { set::<F>(asked, to.address, alias.unwrap_or(to.port)) };
    }
    GO_ON
}

/// The port that the socket is bound to.
#[inline(always)]
fn own_port(ctx: *mut bpf_sock_addr) -> L4Port {
    // SAFETY: the context is the program's own; the kernel hands over a valid socket.
    L4Port::from(unsafe { (*(*ctx).__bindgen_anon_1.sk).src_port } as u16)
}

/// Whether the socket has asked the same container by another name.
#[inline(always)]
fn has_other_name(asked: *mut bpf_sock_addr, to: &Target, target: &Target) -> bool {
    match peers::asked(&key(asked, to.address, to.port)) {
        Some(peer) => !peer.address.is(target.address) || peer.port.half() != target.port.half(),
        None => false,
    }
}

/// Reports the host port as the peer, instead of the container.
#[inline(always)]
fn report<F: Family>(reported: *mut bpf_sock_addr) -> i32 {
    if !is_nodes(reported) {
        return GO_ON;
    }
    // SAFETY: `reported` is the program's context.
    let (address, port) = unsafe { (F::address(reported), port(reported)) };
    if let Some(peer) = peers::asked(&key(reported, address, port)) {
        // SAFETY: as above.
        unsafe { set::<F>(reported, peer.address, peer.port) };
        return GO_ON;
    }
    if let Some((name, port)) =
        alias::name(own_port(reported), address, port, &KernelTables::of_socket(reported))
    {
        // SAFETY: as above.
        unsafe { set::<F>(reported, name, port) };
    }
    GO_ON
}

#[inline(always)]
fn is_nodes(ctx: *mut bpf_sock_addr) -> bool {
    // SAFETY: the context is the program's own.
    NETNS.load() == unsafe { bpf_get_netns_cookie(ctx.cast()) }
}

/// The socket's key at a container's port.
#[inline(always)]
fn key(ctx: *mut bpf_sock_addr, address: Address, port: L4Port) -> PeerKey {
    PeerKey { socket: cookie(ctx), address, port, pad: [0; 6] }
}

#[inline(always)]
fn cookie(ctx: *mut bpf_sock_addr) -> u64 {
    // SAFETY: the context is the program's own.
    unsafe { bpf_get_socket_cookie(ctx.cast()) }
}

/// # Safety
/// `ctx` is the program's context.
#[inline(always)]
unsafe fn port(ctx: *mut bpf_sock_addr) -> L4Port {
    // SAFETY: the caller's word.
    L4Port::from_half(unsafe { (*ctx).user_port } as u16)
}

/// # Safety
/// `ctx` is the program's context.
#[inline(always)]
unsafe fn set<F: Family>(ctx: *mut bpf_sock_addr, address: Address, port: L4Port) {
    // SAFETY: the caller's word.
    unsafe {
        F::set(ctx, address);
        (*ctx).user_port = u32::from(port.half());
    }
}

/// The places of a socket's addresses in the context, by family.
trait Family {
    /// The address that the call is about.
    ///
    /// # Safety
    /// `ctx` is the program's context.
    unsafe fn address(ctx: *mut bpf_sock_addr) -> Address;

    /// The address that the socket is bound to.
    ///
    /// # Safety
    /// As above.
    unsafe fn bound(ctx: *mut bpf_sock_addr) -> Address;

    /// Writes another address.
    ///
    /// # Safety
    /// As above.
    unsafe fn set(ctx: *mut bpf_sock_addr, address: Address);
}

struct V4;

impl Family for V4 {
    #[inline(always)]
    unsafe fn address(ctx: *mut bpf_sock_addr) -> Address {
        // SAFETY: the caller's word.
        Address::from_v4_word(unsafe { (*ctx).user_ip4 })
    }

    #[inline(always)]
    unsafe fn bound(ctx: *mut bpf_sock_addr) -> Address {
        // SAFETY: the caller's word; the kernel hands over a valid socket.
        Address::from_v4_word(unsafe { (*(*ctx).__bindgen_anon_1.sk).src_ip4 })
    }

    #[inline(always)]
    unsafe fn set(ctx: *mut bpf_sock_addr, address: Address) {
        // SAFETY: the caller's word.
        unsafe { (*ctx).user_ip4 = address.words()[3] };
    }
}

struct V6;

/// Verifier: the context is read and written word by word, which the compiler would join.
impl Family for V6 {
    #[inline(always)]
    unsafe fn address(ctx: *mut bpf_sock_addr) -> Address {
        // SAFETY: the caller's word.
        unsafe {
            let [a, b, c, d] = [0, 1, 2, 3].map(|at| (&raw const (*ctx).user_ip6[at]).read_volatile());
            Address::from_v6_words([a, b, c, d])
        }
    }

    #[inline(always)]
    unsafe fn bound(ctx: *mut bpf_sock_addr) -> Address {
        // SAFETY: the caller's word; the kernel hands over a valid socket.
        unsafe {
            let socket = (*ctx).__bindgen_anon_1.sk;
            let [a, b, c, d] = [0, 1, 2, 3].map(|at| (&raw const (*socket).src_ip6[at]).read_volatile());
            Address::from_v6_words([a, b, c, d])
        }
    }

    #[inline(always)]
    unsafe fn set(ctx: *mut bpf_sock_addr, address: Address) {
        let [a, b, c, d] = address.words();
        // SAFETY: the caller's word.
        unsafe {
            (&raw mut (*ctx).user_ip6[0]).write_volatile(a);
            (&raw mut (*ctx).user_ip6[1]).write_volatile(b);
            (&raw mut (*ctx).user_ip6[2]).write_volatile(c);
            (&raw mut (*ctx).user_ip6[3]).write_volatile(d);
        }
    }
}

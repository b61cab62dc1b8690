//! A classic BPF program (linux/filter.h) that keeps learned stations out of a listener's queue.
//!
//! A bridge tells of every address that it learns or forgets, and any container can make it learn as many as it likes: they would fill
//! the queue, and cost the listener what it should hear. What was told to a bridge is rare, and passes; so does every other message.

use std::io;
use std::os::fd::AsFd;

use nix::libc;
use socket2::{SockFilter, SockRef};

/// Where the message's type stands in `struct nlmsghdr`.
const TYPE: u32 = 4;

/// Where family and state stand in `struct ndmsg` behind that header.
const FAMILY: u32 = 16;
const STATE: u32 = 24;

/// Told by somebody, and not learned: `NUD_NOARP`, or an address of the bridge's own.
const TOLD: u16 = libc::NUD_NOARP | libc::NUD_PERMANENT;

/// Has a routing socket hear nothing of neighbours but what was told to bridges.
pub(crate) fn keep_out_learned_stations(socket: &impl AsFd) -> io::Result<()> {
    SockRef::from(socket).attach_filter(&program())
}

/// A load is big-endian whatever the machine is; the messages are as the machine is.
fn program() -> [SockFilter; 9] {
    let native = |number: u16| u32::from(u16::from_be_bytes(number.to_ne_bytes()));
    let load = |size: u32, at: u32| step(libc::BPF_LD | size | libc::BPF_ABS, 0, 0, at);
    let jump =
        |test: u32, to: (u8, u8), value: u32| step(libc::BPF_JMP | test | libc::BPF_K, to.0, to.1, value);
    let end = |bytes: u32| step(libc::BPF_RET | libc::BPF_K, 0, 0, bytes);
    [
        load(libc::BPF_H, TYPE),
        jump(libc::BPF_JEQ, (1, 0), native(libc::RTM_NEWNEIGH)),
        jump(libc::BPF_JEQ, (0, 4), native(libc::RTM_DELNEIGH)),
        load(libc::BPF_B, FAMILY),
        jump(libc::BPF_JEQ, (0, 3), libc::AF_BRIDGE as u32),
        load(libc::BPF_H, STATE),
        jump(libc::BPF_JSET, (0, 1), native(TOLD)),
        end(u32::MAX),
        end(0),
    ]
}

fn step(code: u32, on_true: u8, on_false: u8, value: u32) -> SockFilter {
    SockFilter::new(code as u16, on_true, on_false, value)
}

//! Links of tcx programs (Linux 6.6), made by an interface's number and pinned.
//!
//! `aya` makes them by an interface's name, for whose number it asks with a socket of its own each time. That is a tenth of what an attach
//! takes, and the agent has the number. What is pinned here is `aya`'s to take up.
//!
//! This is a crate of its own because the kernel is asked by a call that no library has, which takes `unsafe`; the agent forbids itself any.

use std::ffi::CStr;
use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd};

use nix::errno::Errno;
use nix::libc::{SYS_bpf, c_int, c_long, syscall};

// The kernel's names and numbers (include/uapi/linux/bpf.h).
const BPF_OBJ_PIN: c_int = 6;
const BPF_OBJ_GET: c_int = 7;
const BPF_LINK_CREATE: c_int = 28;
const BPF_TCX_INGRESS: u32 = 46;
const BPF_TCX_EGRESS: u32 = 47;
const BPF_F_BEFORE: u32 = 1 << 3;
const BPF_F_AFTER: u32 = 1 << 4;
const BPF_F_LINK: u32 = 1 << 13;

/// Which packets meet the program, as seen from its interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Those that come in by it.
    Ingress,
    /// Those that go out.
    Egress,
}

/// The part of `union bpf_attr` that is `link_create`, with what of it is tcx's.
#[repr(C)]
struct LinkCreate {
    prog_fd: u32,
    target_ifindex: u32,
    attach_type: u32,
    flags: u32,
    relative_fd: u32,
    padding: u32,
    expected_revision: u64,
}

/// The part of it with which an object is pinned, and found by its pin.
#[repr(C)]
struct Obj {
    pathname: u64,
    bpf_fd: u32,
    file_flags: u32,
}

const _: () = assert!(size_of::<LinkCreate>() == 32 && size_of::<Obj>() == 16);

/// Has a program run on the interface of this number, in the calling thread's network namespace: in front of what `before` holds there, or
/// behind all others. It runs for as long as the link is open or pinned.
///
/// # Errors
/// The kernel's: `ENODEV` without such an interface, `EEXIST` where the program runs there already, `ENOLINK` or `ENOENT` where `before` does not.
pub fn attach(
    program: BorrowedFd<'_>,
    ifindex: u32,
    direction: Direction,
    before: Option<BorrowedFd<'_>>,
) -> io::Result<OwnedFd> {
    let mut attributes = LinkCreate {
        prog_fd: number(program),
        target_ifindex: ifindex,
        attach_type: match direction {
            Direction::Ingress => BPF_TCX_INGRESS,
            Direction::Egress => BPF_TCX_EGRESS,
        },
        flags: if before.is_some() { BPF_F_BEFORE | BPF_F_LINK } else { BPF_F_AFTER },
        relative_fd: before.map_or(0, number),
        padding: 0,
        expected_revision: 0,
    };
    // SAFETY: it is what this command reads.
    let link = unsafe { bpf(BPF_LINK_CREATE, &mut attributes) }?;
    // SAFETY: the kernel has just opened it, for whoever asked.
    Ok(unsafe { OwnedFd::from_raw_fd(link) })
}

/// Gives a link a name in a BPF file system, by which it is kept.
///
/// # Errors
/// The kernel's: `EEXIST` where something has that name.
pub fn pin(link: BorrowedFd<'_>, path: &CStr) -> io::Result<()> {
    let mut attributes = Obj { pathname: address(path), bpf_fd: number(link), file_flags: 0 };
    // SAFETY: it is what this command reads, and the path lives for as long.
    unsafe { bpf(BPF_OBJ_PIN, &mut attributes) }.map(drop)
}

/// The link that has this name in a BPF file system, or whatever else has.
///
/// # Errors
/// The kernel's: `ENOENT` where nothing has that name.
pub fn pinned(path: &CStr) -> io::Result<OwnedFd> {
    let mut attributes = Obj { pathname: address(path), bpf_fd: 0, file_flags: 0 };
    // SAFETY: it is what this command reads, and the path lives for as long.
    let found = unsafe { bpf(BPF_OBJ_GET, &mut attributes) }?;
    // SAFETY: the kernel has just opened it, for whoever asked.
    Ok(unsafe { OwnedFd::from_raw_fd(found) })
}

fn address(path: &CStr) -> u64 {
    path.as_ptr().expose_provenance() as u64
}

fn number(fd: BorrowedFd<'_>) -> u32 {
    fd.as_raw_fd().cast_unsigned()
}

/// bpf(2). Answers what the kernel does, a descriptor for some commands.
///
/// # Safety
/// The attributes are the command's.
unsafe fn bpf<T>(command: c_int, attributes: &mut T) -> io::Result<RawFd> {
    // SAFETY: the kernel reads as much as it is told that there is.
    let answer: c_long = unsafe { syscall(SYS_bpf, command, &raw mut *attributes, size_of::<T>()) };
    Ok(Errno::result(answer)? as RawFd)
}

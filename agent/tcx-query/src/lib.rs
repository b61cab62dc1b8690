//! The programs at a tcx hook, by the index of its interface, with one system call.
//!
//! This is a crate of its own because the question takes `unsafe`, and aya asks it by an interface's name only: a socket, an `ioctl` and a
//! close for each hook, and three system calls for each program found there. The agent looks at every hook once a second.

use std::io;
use std::mem::size_of;

use nix::errno::Errno;
use nix::libc::{SYS_bpf, c_long, syscall};

/// Which way packets go that a hook's programs see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the interface into the stack.
    Ingress,
    /// The other way.
    Egress,
}

/// Programs that one hook can have (`BPF_MPROG_MAX`, include/linux/bpf_mprog.h).
const MOST: usize = 64;

/// `BPF_PROG_QUERY`, `BPF_TCX_INGRESS` and `BPF_TCX_EGRESS` (include/uapi/linux/bpf.h).
const PROG_QUERY: c_long = 16;
const TCX_INGRESS: u32 = 46;
const TCX_EGRESS: u32 = 47;

/// The member `query` of `union bpf_attr` as Linux 6.6 has it, in the machine's byte order.
#[repr(C)]
#[derive(Default)]
struct Query {
    target_ifindex: u32,
    attach_type: u32,
    query_flags: u32,
    attach_flags: u32,
    prog_ids: u64,
    count: u32,
    pad: u32,
    prog_attach_flags: u64,
    link_ids: u64,
    link_attach_flags: u64,
    revision: u64,
}

/// The ids of the programs at a hook of this thread's network namespace, in the order in which packets meet them.
///
/// # Errors
/// `ENODEV` without such an interface, `EINVAL` before Linux 6.6 or without tcx (`CONFIG_NET_XGRESS`), `EPERM` without `CAP_NET_ADMIN`.
pub fn programs(ifindex: u32, direction: Direction) -> io::Result<Vec<u32>> {
    let mut ids = [0_u32; MOST];
    let mut query = Query {
        target_ifindex: ifindex,
        attach_type: match direction {
            Direction::Ingress => TCX_INGRESS,
            Direction::Egress => TCX_EGRESS,
        },
        prog_ids: ids.as_mut_ptr() as u64,
        count: MOST as u32,
        ..Query::default()
    };
    // SAFETY: the kernel reads and writes `query`, of which it is told the size, and writes at most `count` words to `ids`. Both outlive the
    // call, and nobody else has them.
    let done = unsafe { syscall(SYS_bpf, PROG_QUERY, &raw mut query, size_of::<Query>()) };
    if done < 0 {
        return match Errno::last() {
            // Of a hook that never had one, before kernel commit edfa9af0a73e.
            Errno::ENOENT => Ok(Vec::new()),
            refused => Err(refused.into()),
        };
    }
    Ok(ids[..(query.count as usize).min(MOST)].to_vec())
}

#[cfg(test)]
mod tests {
    use std::thread;

    use nix::libc;
    use nix::sched::{CloneFlags, unshare};

    use super::*;

    /// In a namespace of its own, whose loopback is its first interface. That programs are found where there are some the agent's tests show.
    #[test]
    fn a_hook_without_programs_has_none_and_an_interface_that_is_not_there_has_no_hook() {
        let ask = || {
            unshare(CloneFlags::CLONE_NEWNET).unwrap();
            for direction in [Direction::Ingress, Direction::Egress] {
                assert_eq!(programs(1, direction).unwrap(), [0_u32; 0], "{direction:?}");
            }
            let error = programs(i32::MAX as u32, Direction::Ingress).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::ENODEV));
        };
        thread::spawn(ask).join().unwrap();
    }
}

//! What the kernel's helpers work on: maps and memory, and what is outside of these.

use crate::map::Map;
use crate::memory::Memory;
use crate::outcome::Redirect;

/// Bytes of `struct bpf_fib_lookup`.
pub const FIB_LOOKUP_BYTES: usize = 64;

/// What the kernel says of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FibAnswer {
    /// `BPF_FIB_LKUP_RET_…`.
    pub code: i64,
    /// The question, with the answers written into it.
    pub lookup: [u8; FIB_LOOKUP_BYTES],
}

/// What a program asks that is in no map.
pub trait Surroundings {
    /// Nanoseconds of `CLOCK_MONOTONIC`.
    fn monotonic(&self) -> u64;

    /// Nanoseconds of `CLOCK_BOOTTIME`.
    fn boot_time(&self) -> u64;

    /// Whether the node has a socket for a packet; `tuple` is a `struct bpf_sock_tuple` of either family.
    fn has_socket(&self, tuple: &[u8]) -> bool;

    /// The kernel's routes; `lookup` is a `struct bpf_fib_lookup`.
    fn route(&self, lookup: [u8; FIB_LOOKUP_BYTES]) -> FibAnswer;
}

/// What helpers read and change.
pub(crate) struct Kernel<'a> {
    pub(crate) surroundings: &'a dyn Surroundings,
    pub(crate) maps: Vec<Map>,
    pub(crate) memory: Memory,
    pub(crate) redirect: Option<Redirect>,
    /// Interfaces that clones went to, each clone with its tag.
    pub(crate) copies: Vec<(u32, Option<u16>)>,
}

//! `REVERSE_PATHS`: how the kernel filters sources at the interfaces by which packets come to host ports (RFC 3704).

use zerocopy::{Immutable, IntoBytes};

/// `REVERSE_PATHS`: interfaces with a filter, and those that share a multipath route with one. Written by the agent.
pub const MAX_REVERSE_PATHS: u32 = 4_096;

/// [`ReversePath::filter`]: every source is taken (`rp_filter` 0).
pub const REVERSE_PATH_NONE: u32 = 0;
/// [`ReversePath::filter`]: the best route to the source leads out of the interface that the packet came in by (`rp_filter` 1).
pub const REVERSE_PATH_STRICT: u32 = 1;
/// [`ReversePath::filter`]: there is a route to the source (`rp_filter` 2).
pub const REVERSE_PATH_LOOSE: u32 = 2;

/// Value of `REVERSE_PATHS`, under the interface's [`super::PortKey`]. An interface without an entry has no filter.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Immutable, IntoBytes)]
pub struct ReversePath {
    /// A `REVERSE_PATH_…` value.
    pub filter: u32,
    /// The next hops of one multipath route lead out of the interfaces of one group; 0 for none.
    pub group: u32,
}

const _: () = assert!(size_of::<ReversePath>() == 8);

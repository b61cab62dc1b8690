//! The header of netfilter's messages, `struct nfgenmsg` (linux/netfilter/nfnetlink.h): family, version and resource.

use nix::libc::NFNETLINK_V0;

/// Its bytes.
pub(crate) const HEADER: usize = 4;

/// That of a request about a family (`NFPROTO_…`, `AF_…`).
pub(crate) fn header(family: u8) -> Vec<u8> {
    vec![family, NFNETLINK_V0 as u8, 0, 0]
}

//! A request, of either family.

use crate::wire::address::Address;

/// Offset of a request in its frame, which has no inline tag. Verifier: a constant.
pub(super) const PAYLOAD: u32 = 14;

/// A request: the address that is asked for, and the asker's.
#[derive(Clone, Copy)]
pub(super) struct Request {
    pub(super) asker: Address,
    pub(super) target: Address,
}

//! Other users' rules: whether there are any, and which of them traffic in the fast path bypasses.

mod bypassed;
pub(crate) mod filters;
pub(crate) mod hooks;
pub(crate) mod varying;

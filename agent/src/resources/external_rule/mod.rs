//! Other users' rules: whether there are any, and which of them traffic in the fast path bypasses.

mod bypassed;
pub(crate) mod filters;
pub(crate) mod harmless;
pub(crate) mod hooks;
mod preceding;
mod reading;
pub(crate) mod varying;

//! Masquerading: by which interfaces, and whether the programs or the kernel begin it.

mod applied;
mod bypassed;
pub(crate) mod external_filters;
pub(crate) mod hooks;
mod interfaces;
mod observed;
mod sources;
mod state;
mod unmasqueraded;
mod ways_out;

pub(crate) use self::applied::Outlets;
pub(crate) use self::state::Masquerade;
pub(crate) use self::unmasqueraded::unmasqueraded;

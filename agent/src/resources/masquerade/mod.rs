//! Masquerading: by which interfaces, and whether the programs or the kernel begin it.

mod applied;
mod by_programs;
mod interfaces;
mod observed;
mod sources;
mod state;
mod unmasqueraded;
mod ways_out;

pub(crate) use self::applied::Outlets;
pub(crate) use self::state::Masquerade;
pub(crate) use self::unmasqueraded::unmasqueraded;

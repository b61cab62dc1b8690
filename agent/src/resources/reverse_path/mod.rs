//! Reverse path filters: the programs take from outside what the kernel would take.

mod applied;
mod state;

pub(crate) use self::applied::ReversePaths;
pub(crate) use self::state::Filters;

//! Ports of containers: programs and entries of a host end, its addresses and limits, and what its bridge has set on it.

mod addressed;
mod applied;
mod build;
mod difference;
mod observed;
mod programs;
mod removed;
mod repair;
mod settings;
mod unfinished;

pub(crate) use self::difference::difference;
pub(crate) use self::unfinished::Unfinished;

//! Ports of containers: which are valid, programs and entries of a host end, limits, flows of the kernel.
//!
//! `validation`, `taken` and `occupied` decide and change nothing.

mod addressed;
mod applied;
mod build;
mod container_end;
mod difference;
mod kernel_flows;
mod observed;
mod occupied;
mod programs;
mod removed;
mod repair;
mod settings;
mod taken;
mod translation;
mod unattached;
pub(crate) mod validation;

pub(crate) use self::difference::difference;
pub(crate) use self::removed::Unfinished;
pub(crate) use self::unattached::UnattachedPorts;

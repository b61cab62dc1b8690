//! Ports of containers: programs and entries of a host end, limits, flows of the kernel.

mod addressed;
mod applied;
mod build;
mod kernel_flows;
mod observed;
mod programs;
mod removed;
mod repair;
mod translation;

//! The lower interface of VLAN interfaces: a master in the node's namespace, or the host end of the interface below.
//!
//! The agent only attaches one program there, as long as a VLAN interface needs it. If the master is deleted, its VLAN interfaces are
//! deleted too, as the kernel does with its own VLAN devices.

mod applied;
mod observed;
mod removed;

//! shunt, the CNI plugin.

pub mod host_local;
pub mod prefix;
pub mod result;

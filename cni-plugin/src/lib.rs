//! shunt, the CNI plugin.

pub mod prefix;
pub mod result;

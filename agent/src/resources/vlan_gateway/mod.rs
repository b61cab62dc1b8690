//! VLAN gateways: interfaces of the node in a VLAN, as long as an attachment's configuration asks for one.
//!
//! A gateway is a veth pair; its bridge end is a port of the VLAN like any container's, so that no VLAN device or VLAN filtering of the
//! kernel is needed. It is identified by the names of its two ends.

mod applied;
mod desired;
mod observed;
mod removed;
mod validation;

pub(crate) use self::desired::DesiredGateway;

//! What one part of a program hands to the next: as kernel functions they share no stack.

use crate::abi::translation::TupleKey;
use crate::abi::{Port, Station};
use crate::nat::embedded::IcmpError;
use crate::nat::segment::Segment;
use crate::tables::Route;
use crate::wire::address::Address;
use crate::wire::address::Macs;

/// An ICMP error that is to be rewritten, and where it goes.
#[derive(Clone, Copy, Debug, Default)]
pub struct IcmpErrorPlan {
    /// The error.
    pub error: IcmpError,
    /// The tuple of a packet that goes where the error goes, after translation.
    pub becomes: TupleKey,
    /// The error's source address after translation.
    pub source: Address,
    /// Inwards: the receiver.
    pub station: Station,
    /// Inwards: the Ethernet addresses.
    pub macs: Macs,
    /// Outwards, and to a container that has moved: the route.
    pub route: Route,
    /// Outwards: the sender's counter slot.
    pub slot: u32,
}

/// The first packet of a connection to a host port.
#[derive(Clone, Copy, Debug, Default)]
pub struct DnatPlan {
    /// Offset of the IP header.
    pub header: u32,
    /// The packet.
    pub segment: Segment,
    /// Its tuple after translation.
    pub becomes: TupleKey,
    /// The receiver.
    pub station: Station,
    /// The Ethernet addresses.
    pub macs: Macs,
    /// The host port's `MAPPING_…` bits.
    pub flags: u16,
}

/// A masqueraded connection's first packet.
#[derive(Clone, Copy, Debug, Default)]
pub struct BeginPlan {
    /// The container's port.
    pub port: Port,
    /// Offset of the IP header.
    pub header: u32,
    /// The packet.
    pub segment: Segment,
    /// Its tuple after translation.
    pub becomes: TupleKey,
    /// The route.
    pub route: Route,
}

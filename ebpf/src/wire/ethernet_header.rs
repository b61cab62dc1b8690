//! The Ethernet header (IEEE 802.3).

use zerocopy::{FromBytes, Immutable, KnownLayout};

use crate::wire::address::Mac;

/// The header as it stands in the frame.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, Immutable, KnownLayout)]
pub struct EthernetHeader {
    /// The destination.
    pub destination: Mac,
    /// The source.
    pub source: Mac,
    /// The type of what follows, in network order.
    pub ether_type: u16,
}

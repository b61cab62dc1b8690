//! From bytes to headers: each parser takes the packet and an offset, and returns one header in host terms.
//!
//! Parsing is lazy: a frame that is bridged between two unrestricted containers costs its Ethernet header and nothing
//! more. Every load is bounded; what cannot be read says so ([`Unreadable`]) and never guesses. Nothing of layer 4 is
//! read from a fragment that does not hold it.

mod arp;
mod echo;
mod ethernet;
mod flow;
mod fragment;
mod ip;
mod ipv4;
mod ipv6;
mod nd;
mod network;
mod quote;
mod transport;
mod tuple;

pub use arp::{Arp, ArpOperation, arp};
pub use echo::{ICMP_CHECKSUM, IDENTIFIER};
pub use ethernet::{EtherType, EthernetHeader, Frame, MAX_TAGS, frame, outermost};
pub use flow::{FlowOf, flow};
pub use fragment::{LaterFragment, identification, later_fragment};
pub use ip::{Fragment, Ip, Protocol};
pub use ipv4::ipv4;
pub use ipv6::{MAX_EXTENSIONS, ipv6};
pub use nd::{NeighborDiscovery, neighbor_discovery};
pub use network::{Network, destination, network};
pub use quote::{Quote, UNQUOTED, quote};
pub use transport::{Icmp, Transport, transport};
pub use tuple::{Segment, segment};

/// Why a header could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// The frame, or its directly readable part, ends before the header does.
    Truncated,
    /// The header contradicts itself (version, lengths).
    Malformed,
}

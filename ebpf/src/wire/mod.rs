//! What is on the wire: addresses, packets, headers and checksums. Nothing here knows of maps or stages.
//!
//! Each parser takes the packet and an offset, and returns one header in host terms. Parsing is lazy: a frame that is bridged
//! between two unrestricted containers costs its Ethernet header only. Every load is bounded; a header that cannot be read is
//! [`Unreadable`], never guessed. Nothing of layer 4 is read from a fragment that does not hold it.

pub mod address;
mod arp;
pub mod checksum;
mod configures;
pub mod crc32c;
mod echo;
mod ethernet;
mod ethernet_header;
mod fragment;
mod ip;
mod ipv4;
mod ipv6;
mod link_message;
mod listeners;
mod mac;
mod nd;
mod network;
pub mod packet;
pub mod sctp;
pub mod tag;
mod tcp;
mod transport;

pub use arp::{Arp, ArpOperation, arp};
pub use configures::configures_hosts;
pub use echo::{Echo, ICMP_CHECKSUM, IDENTIFIER, echo};
pub use ethernet::{EtherType, Frame, MAX_TAGS, frame, outermost};
pub use ethernet_header::EthernetHeader;
pub use fragment::{LaterFragment, V6_PAYLOAD, identification, later_fragment};
pub use ip::{Fragment, Ip, Protocol};
pub use ipv4::ipv4;
pub use ipv6::{MAX_EXTENSIONS, ipv6};
pub use link_message::{LinkMessage, link_message};
pub use listeners::Listening;
pub use nd::{NeighborDiscovery, advertised, announced, neighbor_discovery};
pub use network::{Network, destination, network};
pub use packet::{Packet, Readable};
pub use tcp::{Step, tcp};
pub use transport::{
    Icmp, TCP_ACK, TCP_CHECKSUM, TCP_FIN, TCP_RST, TCP_SYN, Transport, UDP_CHECKSUM, transport,
};

/// Enough for Ethernet, two tags, IPv6 with a few extension headers, and a transport header.
pub const HEADERS_BYTES: u32 = 192;

/// Why a header could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// The frame, or its directly readable part, ends before the header does.
    Truncated,
    /// The header contradicts itself (version, lengths).
    Malformed,
}

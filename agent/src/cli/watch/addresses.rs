//! Reads the first bytes of a packet, as far as they were copied.

use std::net::IpAddr;

use etherparse::{LaxNetSlice, LaxSlicedPacket, TransportSlice};

/// A packet's headers.
pub(super) fn sliced(bytes: &[u8], is_bare: bool) -> Option<LaxSlicedPacket<'_>> {
    if is_bare { LaxSlicedPacket::from_ip(bytes).ok() } else { LaxSlicedPacket::from_ethernet(bytes).ok() }
}

/// Its addresses, of IP or in ARP.
pub(super) fn addresses(bytes: &[u8], is_bare: bool) -> Vec<IpAddr> {
    sliced(bytes, is_bare).and_then(|packet| ends(&packet)).map(<[IpAddr; 2]>::into).unwrap_or_default()
}

/// Source and destination.
pub(super) fn ends(packet: &LaxSlicedPacket<'_>) -> Option<[IpAddr; 2]> {
    match packet.net.as_ref()? {
        LaxNetSlice::Ipv4(ip) => {
            Some([ip.header().source_addr().into(), ip.header().destination_addr().into()])
        }
        LaxNetSlice::Ipv6(ip) => {
            Some([ip.header().source_addr().into(), ip.header().destination_addr().into()])
        }
        LaxNetSlice::Arp(arp) => {
            let [sender, target] = [arp.sender_protocol_addr(), arp.target_protocol_addr()];
            let read = |bytes: &[u8]| <[u8; 4]>::try_from(bytes).ok().map(IpAddr::from);
            Some([read(sender)?, read(target)?])
        }
    }
}

/// Source and destination port of TCP and UDP.
pub(super) fn ports(packet: &LaxSlicedPacket<'_>) -> Option<[u16; 2]> {
    match packet.transport.as_ref()? {
        TransportSlice::Tcp(tcp) => Some([tcp.source_port(), tcp.destination_port()]),
        TransportSlice::Udp(udp) => Some([udp.source_port(), udp.destination_port()]),
        _ => None,
    }
}

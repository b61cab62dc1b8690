//! A TCP header, as far as connections are concerned (RFC 9293 section 3.1).

use super::ip::Ip;
use super::packet::Packet;
use super::transport::{TCP_FIN, TCP_RST, TCP_SYN};
use crate::wire::address::L4Port;

/// The header without options, in half words.
type Header = [u16; 10];

/// What a segment says of its connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// CWR, ECE, URG, ACK, PSH, RST, SYN, FIN.
    pub flags: u8,
    /// Of a RST its sequence number, of a FIN the one behind it, as the other side will acknowledge it; of all else 0.
    pub number: u32,
    /// The acknowledgment number, of a segment with ACK.
    pub acknowledges: u32,
}

/// The ports of the segment behind `ip`, whose own header is at `header`, and what it says. None where it ends too soon.
#[inline(always)]
pub fn tcp<P: Packet>(packet: &P, header: u32, ip: &Ip) -> Option<([L4Port; 2], Step)> {
    let [source, destination, a, b, c, d, words_flags, ..]: Header = packet.load(ip.payload)?;
    let [words, flags] = u16::from_be(words_flags).to_be_bytes();
    let (sequence, acknowledges) = (word(a, b), word(c, d));
    let number = match flags & (TCP_RST | TCP_FIN) {
        0 => 0,
        TCP_FIN => sequence.wrapping_add(length(packet, header, ip, (words, flags))?),
        _ => sequence,
    };
    Some(([source, destination].map(L4Port::from_half), Step { flags, number, acknowledges }))
}

#[inline(always)]
const fn word(high: u16, low: u16) -> u32 {
    (u16::from_be(high) as u32) << 16 | u16::from_be(low) as u32
}

/// Sequence numbers that a segment takes: its data, a SYN, and its FIN. By the IP header, as a short frame is padded; a large packet of
/// more than 65,535 bytes, whose header says nothing, is not.
#[inline(always)]
fn length<P: Packet>(packet: &P, header: u32, ip: &Ip, (words, flags): (u8, u8)) -> Option<u32> {
    const V4_BYTES: u32 = 2;
    const V6_BYTES: u32 = 4;
    const V6_HEADER: u32 = 40;
    let (at, fixed) = if ip.source.is_v4() { (V4_BYTES, 0) } else { (V6_BYTES, V6_HEADER) };
    let bytes: u16 = packet.load(header + at)?;
    let end = match u32::from(u16::from_be(bytes)) {
        0 => packet.length(),
        bytes => header + fixed + bytes,
    };
    let data = end.saturating_sub(ip.payload + u32::from(words >> 4) * 4);
    Some(data + 1 + u32::from(flags & TCP_SYN != 0))
}

//! Packets that configure other hosts: routers' advertisements and redirects, and DHCP servers' messages to clients.

use super::Unreadable;
use super::ip::{Fragment, Ip, Protocol};
use crate::wire::packet::Packet;

/// RFC 4861: type numbers of ICMPv6.
const ROUTER_ADVERTISEMENT: u8 = 134;
const REDIRECT: u8 = 137;
/// RFC 792 and RFC 1256: type numbers of ICMPv4.
const REDIRECT_V4: u8 = 5;
const ROUTER_ADVERTISEMENT_V4: u8 = 9;
/// The port of DHCP clients (RFC 2131 section 4.1), and of DHCPv6 clients (RFC 8415 section 7.2).
const CLIENT_V4: u16 = 68;
const CLIENT_V6: u16 = 546;

/// Whether the packet configures its receivers. DHCP clients look at no source port, so the destination port decides.
///
/// # Errors
/// [`Unreadable::Truncated`] when its transport header is cut off.
#[inline(always)]
pub fn configures_hosts<P: Packet>(packet: &P, ip: &Ip) -> Result<bool, Unreadable> {
    // Its first fragment has been judged: no host accepts a datagram without it.
    if ip.fragment == Fragment::Later {
        return Ok(false);
    }
    match ip.protocol {
        Protocol::UDP => {
            let [_, destination]: [u16; 2] = packet.load(ip.payload).ok_or(Unreadable::Truncated)?;
            let client = if ip.destination.is_v4() { CLIENT_V4 } else { CLIENT_V6 };
            Ok(u16::from_be(destination) == client)
        }
        Protocol::ICMPV6 => {
            let [kind, _]: [u8; 2] = packet.load(ip.payload).ok_or(Unreadable::Truncated)?;
            Ok(matches!(kind, ROUTER_ADVERTISEMENT | REDIRECT))
        }
        Protocol::ICMP => {
            let [kind, _]: [u8; 2] = packet.load(ip.payload).ok_or(Unreadable::Truncated)?;
            Ok(matches!(kind, REDIRECT_V4 | ROUTER_ADVERTISEMENT_V4))
        }
        _ => Ok(false),
    }
}

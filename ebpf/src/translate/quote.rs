//! quote: does an ICMP error speak of a translated connection, and of which?
//!
//! Its quotation is what one side was sent, so turned round it is the tuple of what that side sends: the error becomes
//! what such a packet becomes. It shows nothing of the connection, which lives no longer for it (RFC 5508 REQ-7).

use crate::Tables;
use crate::abi::translation::TupleKey;
use crate::address::Address;
use crate::parse::{Protocol, Quote};
use crate::translate::connection::{Fate, fate};

/// What a packet of the quotation's tuple becomes, and whose masqueraded connection it is of. None where no connection that
/// lives has it, or the error is not for whoever sent the quoted packet.
#[inline(always)]
pub fn becomes<T: Tables>(quote: &Quote, tables: &T) -> Option<(TupleKey, u32)> {
    if !quote.ip.destination.is(quote.key.destination) {
        return None;
    }
    let now = tables.boot_time();
    let protocol = Protocol(quote.key.protocol);
    let (becomes, holder) = tables.becomes(&quote.key)?;
    let mut other = becomes.reversed(becomes.domain);
    let fate = tables
        .follow(&quote.key, &mut other, 0, |mine, others| (fate(protocol, others, mine, false, now), None))?;
    (fate == Fate::Continues).then_some((becomes, holder))
}

/// Whom the error is from, as its receiver sees it: the other side itself is who its packets are from, and a router on
/// the way there is who it is.
#[inline(always)]
pub fn sender(quote: &Quote, becomes: &TupleKey) -> Address {
    if quote.ip.source.is(quote.key.source) { becomes.source } else { quote.ip.source }
}

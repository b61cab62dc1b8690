//! Multicast listener discovery (RFC 2710, RFC 3810), behind one set of hop-by-hop options that is as short as there is. Anything longer or
//! unreadable is taken for what asks the most of others.

use zerocopy::{FromBytes, Immutable, KnownLayout};

use super::ip::Protocol;
use crate::wire::address::Address;
use crate::wire::packet::Packet;

/// Offsets in a frame without inline tags. Verifier: constants.
const OPTIONS: u32 = 14 + 40;
const MESSAGE: u32 = OPTIONS + 8;
const RECORDS: u32 = MESSAGE + 8;

/// Records that are read.
const MAX_RECORDS: u16 = 6;
const RECORD_BYTES: u32 = size_of::<Record>() as u32;
/// Where a report with so many ends.
pub(super) const END: u32 = RECORDS + MAX_RECORDS as u32 * RECORD_BYTES;

const REPORT_V1: u8 = 131;
const DONE: u8 = 132;
const REPORT: u8 = 143;

/// `ff02::2`, to which every router listens (RFC 4291 section 2.7.1).
const ALL_ROUTERS: Address =
    Address::from_v6([u16::from_ne_bytes([0xff, 2]), 0, 0, 0, 0, 0, 0, u16::from_ne_bytes([0, 2])]);

/// The largest scope that no router forwards (RFC 4291 section 2.7).
const LINK_SCOPE: u8 = 2;

/// One group of a report, without its sources; half words in network order.
#[repr(C)]
#[derive(Clone, Copy, FromBytes, Immutable, KnownLayout)]
struct Record {
    kind: u8,
    auxiliary: u8,
    sources: u16,
    group: [u16; 8],
}

const _: () = assert!(size_of::<Record>() == 20);

/// What is said of listeners to groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listening {
    /// Asks who listens to which groups, or may do so: anything else with hop-by-hop options.
    Query,
    /// Says to which groups somebody listens.
    Report {
        /// The group of all routers may be one of them.
        is_routers: bool,
        /// There may be groups that reach beyond the link.
        is_beyond: bool,
    },
}

/// What asks the most of others.
const ANY_REPORT: Listening = Listening::Report { is_routers: true, is_beyond: true };

/// The message of a packet with hop-by-hop options.
#[inline(always)]
pub(super) fn listening<P: Packet>(packet: &P) -> Listening {
    let Some([next, more]) = packet.load::<[u8; 2]>(OPTIONS) else { return Listening::Query };
    let Some([kind, _]) = packet.load::<[u8; 2]>(MESSAGE) else { return Listening::Query };
    if Protocol(next) != Protocol::ICMPV6 || more != 0 {
        return Listening::Query;
    }
    match kind {
        REPORT => report(packet).unwrap_or(ANY_REPORT),
        REPORT_V1 | DONE => ANY_REPORT,
        _ => Listening::Query,
    }
}

/// A report; none where not all of its groups are read.
#[inline(always)]
fn report<P: Packet>(packet: &P) -> Option<Listening> {
    let [_, records]: [u16; 2] = packet.load(MESSAGE + 4)?;
    let records = u16::from_be(records);
    if records > MAX_RECORDS {
        return None;
    }
    let (mut is_routers, mut is_beyond, mut at) = (false, false, RECORDS);
    for index in 0..MAX_RECORDS {
        if index >= records {
            break;
        }
        let record: Record = packet.load(at)?;
        if u16::from(record.auxiliary) | record.sources != 0 {
            // Where the next one begins is not computed.
            if index + 1 != records {
                return None;
            }
            is_beyond = true;
        }
        let [_, scope] = record.group[0].to_ne_bytes();
        is_beyond |= scope & 0xf > LINK_SCOPE;
        is_routers |= Address::from_v6(record.group).is(ALL_ROUTERS);
        at += RECORD_BYTES;
    }
    Some(Listening::Report { is_routers, is_beyond })
}

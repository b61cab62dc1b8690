//! Which packets are a share's of [`super::shares`]: filters of `u32`, which every kernel has (net/sched/cls_u32.c).
//!
//! A redirected packet keeps the interface that it came in by (`skb_iif`), and so does one that a bridge forwards. One that the kernel
//! routes has its bridge's, and is known by its source address.

use std::net::IpAddr;

use netlink_packet_core::DefaultNla;
use netlink_packet_route::RouteNetlinkMessage;
use nix::errno::Errno;

use super::shares::HANDLE;
use super::{TrafficControl, about, with};
use crate::attribute::{find, number, text};
use crate::connection::Connection;
use crate::error::{NetlinkError, unless};
use crate::request::{MAKE, Request};

const TCA_U32_CLASSID: u16 = 1;
const TCA_U32_SEL: u16 = 5;
const TCA_U32_INDEV: u16 = 8;

/// `TC_U32_TERMINAL`: what matches is the class's.
const TERMINAL: u8 = 1;

/// Bytes of `struct tc_u32_sel` without its keys, and of a key.
const SELECTOR: usize = 16;
const KEY: usize = 16;

/// Where the source address is in an IP header.
const SOURCE_V4: u32 = 12;
const SOURCE_V6: u32 = 8;

/// The node within a table of `u32`; 0 is the table itself.
const NODE: u32 = 0xfff;

/// Selects packets.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Selector {
    /// Those that came in by the interface of this name, which is looked up once.
    From(String),
    /// Those with this source address.
    Source(IpAddr),
    /// Something else, by somebody else.
    Other,
}

/// A filter that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// What it selects.
    pub selector: Selector,
    /// The class that it is for, without our major number.
    pub class: u16,
    info: u32,
    handle: u32,
}

/// Adds a filter for a class that is there.
pub fn add(
    connection: &mut Connection,
    index: u32,
    selector: &Selector,
    class: u16,
) -> Result<(), NetlinkError> {
    let mut message = with(about(index, 0, HANDLE), "u32", options(selector, class));
    message.header.info = info(selector);
    connection.run(Request::new("add a filter", RouteNetlinkMessage::NewTrafficFilter(message), MAKE))
}

/// Removes a filter; it may be gone.
pub fn remove(connection: &mut Connection, index: u32, filter: &Found) -> Result<(), NetlinkError> {
    let mut message = about(index, filter.handle, HANDLE);
    message.header.info = filter.info;
    let message = RouteNetlinkMessage::DelTrafficFilter(message);
    unless(connection.run(Request::new("remove a filter", message, 0)), NetlinkError::is_missing)
}

/// The filters of a link; none without our discipline.
pub fn list(connection: &mut Connection, index: u32) -> Result<Vec<Found>, NetlinkError> {
    let message = RouteNetlinkMessage::GetTrafficFilter(about(index, 0, HANDLE));
    let found = match connection.list(Request::<TrafficControl>::dump("list the filters", message)) {
        Err(error) if error.errno() == Some(Errno::EINVAL) => Vec::new(),
        found => found?,
    };
    Ok(found.into_iter().filter_map(read).collect())
}

fn read(found: TrafficControl) -> Option<Found> {
    let TrafficControl { handle, info, kind, options, .. } = found;
    let is_filter = handle != 0 && (kind != "u32" || handle & NODE != 0);
    let class = find(&options, TCA_U32_CLASSID).and_then(number).unwrap_or_default();
    let selector = if kind == "u32" { selected(&options) } else { Selector::Other };
    is_filter.then_some(Found { selector, class: class as u16, info, handle })
}

/// Priority and protocol: each protocol has a priority of its own.
fn info(selector: &Selector) -> u32 {
    const ALL: u16 = 0x0003;
    const V4: u16 = 0x0800;
    const V6: u16 = 0x86dd;
    let (priority, protocol) = match selector {
        Selector::From(_) | Selector::Other => (1, ALL),
        Selector::Source(IpAddr::V4(_)) => (2, V4),
        Selector::Source(IpAddr::V6(_)) => (3, V6),
    };
    priority << 16 | u32::from(protocol.to_be())
}

fn options(selector: &Selector, class: u16) -> Vec<DefaultNla> {
    let keys = match selector {
        Selector::From(_) | Selector::Other => Vec::new(),
        Selector::Source(IpAddr::V4(address)) => keys(SOURCE_V4, &address.octets()),
        Selector::Source(IpAddr::V6(address)) => keys(SOURCE_V6, &address.octets()),
    };
    // struct tc_u32_sel: flags, offshift, nkeys; offsets and a hash that are not used.
    let mut sel = vec![0; SELECTOR];
    sel[0] = TERMINAL;
    sel[2] = u8::try_from(keys.len()).unwrap_or_default();
    sel.extend(keys.concat());
    let class = HANDLE | u32::from(class);
    let mut options = vec![
        DefaultNla::new(TCA_U32_CLASSID, class.to_ne_bytes().to_vec()),
        DefaultNla::new(TCA_U32_SEL, sel),
    ];
    if let Selector::From(name) = selector {
        let name = name.bytes().chain([0]).collect();
        options.push(DefaultNla::new(TCA_U32_INDEV, name));
    }
    options
}

/// A `struct tc_u32_key` for each word: mask and value in network order, where it is, no further mask.
fn keys(at: u32, address: &[u8]) -> Vec<Vec<u8>> {
    let key = |(at, word): (u32, &[u8])| [&[0xff; 4], word, &at.to_ne_bytes(), &[0; 4]].concat();
    (at..).step_by(4).zip(address.chunks(4)).map(key).collect()
}

fn selected(options: &[u8]) -> Selector {
    let Some(sel) = find(options, TCA_U32_SEL) else { return Selector::Other };
    let words = sel.get(SELECTOR..).unwrap_or_default();
    let value: Vec<u8> = words.chunks_exact(KEY).filter_map(|key| key.get(4..8)).flatten().copied().collect();
    let from = find(options, TCA_U32_INDEV).map(text);
    let selector = match (from, value.len()) {
        (Some(name), 0) => Selector::From(name),
        (None, 4) => <[u8; 4]>::try_from(&*value).map_or(Selector::Other, |it| Selector::Source(it.into())),
        (None, 16) => <[u8; 16]>::try_from(&*value).map_or(Selector::Other, |it| Selector::Source(it.into())),
        _ => Selector::Other,
    };
    // Whether there is nothing else in it.
    let class = find(options, TCA_U32_CLASSID).and_then(number).unwrap_or_default() as u16;
    let own = self::options(&selector, class).into_iter();
    let mut sels = own.filter(|it| netlink_packet_core::Nla::kind(it) == TCA_U32_SEL);
    let is_whole = sels.next().is_some_and(|own| {
        let mut bytes = vec![0; netlink_packet_core::Nla::value_len(&own)];
        netlink_packet_core::Nla::emit_value(&own, &mut bytes);
        bytes == sel
    });
    if is_whole { selector } else { Selector::Other }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribute::emitted;

    #[test]
    fn what_is_selected_is_what_is_read_back_and_anything_else_is_not() {
        let all = [
            Selector::From("veth0".to_owned()),
            Selector::Source("10.0.0.9".parse().unwrap()),
            Selector::Source("fd00::9".parse().unwrap()),
        ];
        for selector in all {
            let mut bytes = emitted(&&options(&selector, 7)[..]);
            assert_eq!(selected(&bytes), selector);
            // The number of keys, behind one attribute and one header.
            bytes[8 + 4 + 2] ^= 1;
            assert_eq!(selected(&bytes), Selector::Other);
        }
        assert_eq!(selected(&[]), Selector::Other);
    }
}

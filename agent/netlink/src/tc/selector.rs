//! Which packets are a share's of [`super::shares`]: filters of `u32`, which every kernel has (net/sched/cls_u32.c).
//!
//! A redirected packet keeps the interface that it came in by (`skb_iif`), and so does one that a bridge forwards. One that the kernel
//! routes has its bridge's: its priority may name its class, which the queue heeds before it asks any filter (`htb_classify`).

use netlink_packet_core::DefaultNla;
use netlink_packet_route::RouteNetlinkMessage;
use nix::errno::Errno;

use super::htb::EVERYTHING;
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

/// Bytes of `struct tc_u32_sel` without keys: flags, offshift, nkeys; offsets and a hash that are not used. The first flag is
/// [`TERMINAL`], and there are no keys.
const SELECTOR: usize = 16;

/// The node within a table of `u32`; 0 is the table itself.
const NODE: u32 = 0xfff;

/// A filter that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The interface that its packets came in by, by its name, which is looked up once; none where it is a filter of somebody else's, or of
    /// an earlier agent.
    pub from: Option<String>,
    /// The class that it is for, without our major number.
    pub class: u16,
    info: u32,
    handle: u32,
}

/// Adds a filter for a class that is there, and packets that came in by the interface of this name.
pub fn add(connection: &mut Connection, index: u32, from: &str, class: u16) -> Result<(), NetlinkError> {
    let mut message = with(about(index, 0, HANDLE), "u32", options(from, class));
    message.header.info = EVERYTHING;
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
    let from = if kind == "u32" { selected(&options) } else { None };
    is_filter.then_some(Found { from, class: class as u16, info, handle })
}

fn options(name: &str, class: u16) -> Vec<DefaultNla> {
    let class = HANDLE | u32::from(class);
    let name = name.bytes().chain([0]).collect();
    vec![
        DefaultNla::new(TCA_U32_CLASSID, class.to_ne_bytes().to_vec()),
        DefaultNla::new(TCA_U32_SEL, everything()),
        DefaultNla::new(TCA_U32_INDEV, name),
    ]
}

/// A selector without keys: whatever comes by the interface.
fn everything() -> Vec<u8> {
    let mut sel = vec![0; SELECTOR];
    sel[0] = TERMINAL;
    sel
}

fn selected(options: &[u8]) -> Option<String> {
    let is_plain = find(options, TCA_U32_SEL).is_some_and(|sel| sel == everything());
    find(options, TCA_U32_INDEV).map(text).filter(|_| is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribute::emitted;

    #[test]
    fn what_is_selected_is_what_is_read_back_and_anything_else_is_not() {
        let mut bytes = emitted(&&options("veth0", 7)[..]);
        assert_eq!(selected(&bytes), Some("veth0".to_owned()));
        // The number of keys, behind one attribute and one header.
        bytes[8 + 4 + 2] ^= 1;
        assert_eq!(selected(&bytes), None);
        assert_eq!(selected(&[]), None);
    }
}

//! Entries of a forwarding database: the kernel bridge's own, and the addresses that an interface listens to.

use nix::libc;
use shunt_dataplane::wire::address::Mac;

use super::attribute::attribute;
use super::socket::{self, NetlinkError, RequestSocket};

/// Bytes of `struct ndmsg`.
const NDMSG: usize = 12;

/// Which bridge an entry is of (`NDA_MASTER`, linux/neighbour.h).
const NDA_MASTER: u16 = 9;

/// `NTF_MASTER | NTF_STICKY` of `linux/neighbour.h`: the bridge's own entry, which never moves to another port.
const STICKY: u8 = MASTER | 1 << 6;
const MASTER: u8 = 1 << 2;

/// `NTF_USE | NTF_MASTER`.
const HEARD: u8 = 1 | 1 << 2;

/// `NTF_SELF`: the interface's own list, not that of the bridge that it is a port of.
const SELF: u8 = 1 << 1;

/// Tells a bridge that `mac` is behind its port `index` for good.
///
/// # Errors
/// Netlink's.
pub(crate) fn add(socket: &mut RequestSocket, index: u32, mac: Mac) -> Result<(), NetlinkError> {
    socket.create(libc::RTM_NEWNEIGH, &entry(index, libc::NUD_NOARP, STICKY, mac))
}

/// Where a bridge takes a station to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The bridge.
    pub bridge: u32,
    /// The port by which it reaches the station; the bridge itself where the address is its own.
    pub port: u32,
    /// The station.
    pub mac: Mac,
    /// Whether it stays there, as a container does: told, and never to move.
    pub sticky: bool,
}

/// Reads the payload of `RTM_NEWNEIGH` or `RTM_DELNEIGH`. None for what is no bridge's entry, and for one in a VLAN.
pub fn parse(payload: &[u8]) -> Option<Placement> {
    let (header, rest) = payload.split_first_chunk::<NDMSG>()?;
    let [family, _, _, _, i0, i1, i2, i3, s0, s1, flags, _] = *header;
    if i32::from(family) != libc::AF_BRIDGE {
        return None;
    }
    let told = u16::from_ne_bytes([s0, s1]) & libc::NUD_NOARP != 0;
    let (mut mac, mut bridge, mut vlan) = (None, None, false);
    socket::attributes(rest, |kind, value| match kind {
        libc::NDA_LLADDR => mac = <[u8; 6]>::try_from(value).ok().map(Mac::new),
        NDA_MASTER => bridge = socket::number(value),
        libc::NDA_VLAN => vlan = true,
        _ => {}
    });
    let port = u32::from_ne_bytes([i0, i1, i2, i3]);
    let sticky = told && flags & STICKY & !MASTER != 0;
    (!vlan).then_some(Placement { bridge: bridge?, port, mac: mac?, sticky })
}

/// Where a bridge takes a station to be; none if it does not know it.
///
/// # Errors
/// Netlink's, other than that there is no such entry.
pub(crate) fn find(
    socket: &mut RequestSocket,
    bridge: u32,
    mac: Mac,
) -> Result<Option<Placement>, NetlinkError> {
    let mut payload = vec![0; NDMSG];
    payload[0] = libc::AF_BRIDGE as u8;
    payload.extend(attribute(libc::NDA_LLADDR, &mac.octets()));
    payload.extend(attribute(NDA_MASTER, &bridge.to_ne_bytes()));
    let mut found = None;
    match socket.get(libc::RTM_GETNEIGH, &payload, |payload| found = parse(payload)) {
        Err(error) if error.is_absent() => Ok(None),
        Err(error) => Err(error),
        Ok(()) => Ok(found),
    }
}

/// Makes an interface take frames for `mac` too. It may do so already.
///
/// # Errors
/// Netlink's.
pub(crate) fn listen(socket: &mut RequestSocket, index: u32, mac: Mac) -> Result<(), NetlinkError> {
    match socket.create(libc::RTM_NEWNEIGH, &entry(index, libc::NUD_PERMANENT, SELF, mac)) {
        Err(error) if error.means_exists() => Ok(()),
        other => other,
    }
}

/// Takes that back. The interface may be gone.
///
/// # Errors
/// Netlink's.
pub(crate) fn stop_listening(socket: &mut RequestSocket, index: u32, mac: Mac) -> Result<(), NetlinkError> {
    match socket.get(libc::RTM_DELNEIGH, &entry(index, libc::NUD_PERMANENT, SELF, mac), |_| {}) {
        Err(error) if error.is_absent() => Ok(()),
        other => other,
    }
}

/// Has a bridge believe that it has just heard `mac` by its port `index`, as if a frame had come in there.
///
/// # Errors
/// Netlink's.
pub(crate) fn hear(socket: &mut RequestSocket, index: u32, mac: Mac) -> Result<(), NetlinkError> {
    socket.create(libc::RTM_NEWNEIGH, &entry(index, libc::NUD_REACHABLE, HEARD, mac))
}

/// `struct ndmsg`, then one attribute.
fn entry(index: u32, state: u16, flags: u8, mac: Mac) -> Vec<u8> {
    let mut payload = vec![libc::AF_BRIDGE as u8, 0, 0, 0];
    payload.extend(index.to_ne_bytes());
    payload.extend(state.to_ne_bytes());
    payload.extend([flags, 0]);
    payload.extend(10u16.to_ne_bytes());
    payload.extend(libc::NDA_LLADDR.to_ne_bytes());
    payload.extend(mac.octets());
    payload.extend([0; 2]);
    payload
}

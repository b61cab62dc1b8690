//! Entries of a forwarding database: the kernel bridge's own, and the addresses that an interface listens to.

use dataplane::address::Mac;
use nix::libc;

use super::socket::{NetlinkError, RequestSocket};

/// `NTF_MASTER | NTF_STICKY` of `linux/neighbour.h`: the bridge's own entry, which never moves to another port.
const STICKY: u8 = 1 << 2 | 1 << 6;

/// `NTF_SELF`: the interface's own list, not that of the bridge that it is a port of.
const SELF: u8 = 1 << 1;

/// Tells a bridge that `mac` is behind its port `index` for good.
///
/// # Errors
/// Netlink's.
pub(crate) fn add(socket: &mut RequestSocket, index: u32, mac: Mac) -> Result<(), NetlinkError> {
    socket.create(libc::RTM_NEWNEIGH, &entry(index, libc::NUD_NOARP, STICKY, mac))
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

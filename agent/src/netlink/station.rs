//! Entries of the kernel bridge's own forwarding database.

use dataplane::address::Mac;
use nix::libc;

use super::socket::{NetlinkError, RequestSocket};

/// `NTF_MASTER | NTF_STICKY` of `linux/neighbour.h`: the bridge's own entry, which never moves to another port.
const STICKY: u8 = 1 << 2 | 1 << 6;

/// Tells a bridge that `mac` is behind its port `index` for good.
///
/// # Errors
/// Netlink's.
pub(crate) fn add(socket: &mut RequestSocket, index: u32, mac: Mac) -> Result<(), NetlinkError> {
    // `struct ndmsg`, then one attribute.
    let mut payload = vec![libc::AF_BRIDGE as u8, 0, 0, 0];
    payload.extend(index.to_ne_bytes());
    payload.extend(libc::NUD_NOARP.to_ne_bytes());
    payload.extend([STICKY, 0]);
    payload.extend(10u16.to_ne_bytes());
    payload.extend(libc::NDA_LLADDR.to_ne_bytes());
    payload.extend(mac.octets());
    payload.extend([0; 2]);
    socket.create(libc::RTM_NEWNEIGH, &payload)
}

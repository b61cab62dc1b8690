//! The kernel's name of a network namespace, which no other one gets as long as the node runs.

use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::sockopt::GetStruct;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, getsockopt, socket};

/// `SO_NETNS_COOKIE` (Linux 5.14).
#[derive(Clone, Copy, Debug)]
struct NetnsCookie;

nix::getsockopt_impl!(NetnsCookie, libc::SOL_SOCKET, libc::SO_NETNS_COOKIE, u64, GetStruct<u64>);

/// The cookie of the calling thread's network namespace.
///
/// # Errors
/// The kernel has none.
pub fn own() -> Result<u64, Errno> {
    let socket = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
    getsockopt(&socket, NetnsCookie)
}

//! Whether the node forwards, asked of the kernel directly.
//!
//! `/proc/sys/net` says the same, but each network namespace that somebody looked into has its own entries there under the same names,
//! and all of them lie in one chain of the kernel's cache: among 1,000 containers a look takes a millisecond.

use netlink_packet_route::AddressFamily;

use crate::attribute::{attribute, find};
use crate::request::{Reply, Request};

// The crates have no type for these messages (linux/netconf.h).
const RTM_GETNETCONF: u16 = 82;
const NETCONFA_IFINDEX: u16 = 1;
const NETCONFA_FORWARDING: u16 = 2;
/// Stands for what holds for every interface (`NETCONFA_IFINDEX_ALL`).
const ALL: i32 = -1;
/// Bytes of `struct netconfmsg` with its padding.
const HEADER: usize = 4;

/// Whether the node forwards a family; none of an answer that does not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forwards(pub bool);

impl Reply for Forwards {
    fn read(payload: &[u8]) -> Option<Self> {
        let forwarding = find(payload.get(HEADER..)?, NETCONFA_FORWARDING)?;
        Some(Self(forwarding.iter().any(|byte| *byte != 0)))
    }
}

/// Asks for the setting that holds for every interface, of one family.
pub fn forwarding(family: AddressFamily) -> Request<Forwards> {
    let payload =
        [&[u8::from(family), 0, 0, 0][..], &attribute(NETCONFA_IFINDEX, &ALL.to_ne_bytes())].concat();
    Request::raw(format!("read the settings of {family:?}"), RTM_GETNETCONF, 0, payload)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Connection;

    #[test]
    fn the_kernel_says_what_proc_says() {
        let file = std::fs::read_to_string("/proc/sys/net/ipv4/ip_forward").unwrap();
        let said = Connection::open().unwrap().get(forwarding(AddressFamily::Inet)).unwrap();
        assert_eq!(said, Some(Forwards(file.trim() != "0")));
    }

    #[test]
    fn an_answer_without_the_setting_says_nothing() {
        assert_eq!(Forwards::read(&[2]), None);
        assert_eq!(Forwards::read(&[2, 0, 0, 0]), None);
    }
}

//! Whether the node forwards and how it filters sources, asked of the kernel directly.
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
const NETCONFA_RP_FILTER: u16 = 3;
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
    settings(family, ALL)
}

/// A reverse path filter (`rp_filter`): 0 for none, 1 strict, any other loose; none of an answer that does not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReversePathFilter(pub i32);

impl Reply for ReversePathFilter {
    fn read(payload: &[u8]) -> Option<Self> {
        let filter = find(payload.get(HEADER..)?, NETCONFA_RP_FILTER)?;
        Some(Self(i32::from_ne_bytes(*filter.first_chunk()?)))
    }
}

/// Asks for the filter of an interface, or for the one that holds for every interface. The kernel applies the larger of the two.
pub fn reverse_path_filter(interface: Option<u32>) -> Request<ReversePathFilter> {
    settings(AddressFamily::Inet, interface.map_or(ALL, u32::cast_signed))
}

fn settings<T: Reply>(family: AddressFamily, interface: i32) -> Request<T> {
    let payload =
        [&[u8::from(family), 0, 0, 0][..], &attribute(NETCONFA_IFINDEX, &interface.to_ne_bytes())].concat();
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
    fn the_kernel_says_how_it_filters_sources_as_proc_does() {
        let mut connection = Connection::open().unwrap();
        for (interface, name) in [(None, "all"), (Some(1), "lo")] {
            let file = std::fs::read_to_string(format!("/proc/sys/net/ipv4/conf/{name}/rp_filter")).unwrap();
            let said = connection.get(reverse_path_filter(interface)).unwrap();
            assert_eq!(said, Some(ReversePathFilter(file.trim().parse().unwrap())), "{name}");
        }
    }

    #[test]
    fn an_answer_without_the_setting_says_nothing() {
        assert_eq!(Forwards::read(&[2]), None);
        assert_eq!(Forwards::read(&[2, 0, 0, 0]), None);
        assert_eq!(ReversePathFilter::read(&[2, 0, 0, 0]), None);
    }
}

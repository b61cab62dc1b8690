//! What the kernel counts at links.

use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::LinkHeader;
use nix::libc;
use rtnetlink::LinkUnspec;

use super::read::HEADER;
use crate::attribute::find;
use crate::request::{Reply, Request};

/// A link's counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkCounters {
    /// The link's ifindex.
    pub index: u32,
    /// Packets that it has received (`rx_packets`).
    pub received: u64,
}

impl Reply for LinkCounters {
    fn read(payload: &[u8]) -> Option<Self> {
        let header = LinkHeader::parse(payload).ok()?;
        // `struct rtnl_link_stats64` begins with `rx_packets`.
        let counters = find(payload.get(HEADER..)?, libc::IFLA_STATS64)?;
        let received = counters.first_chunk().copied().map(u64::from_ne_bytes)?;
        Some(Self { index: header.index, received })
    }
}

/// Asks for the counters of every link.
pub fn link_counters() -> Request<LinkCounters> {
    let every = LinkUnspec::new_with_index(0).build();
    Request::dump("read the links' counters", RouteNetlinkMessage::GetLink(every))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribute::attribute;

    #[test]
    fn received_packets_are_the_first_of_the_counters() {
        let mut payload = vec![0; HEADER];
        payload[4..8].copy_from_slice(&7i32.to_ne_bytes());
        assert_eq!(LinkCounters::read(&payload), None);
        let counters = [5u64, 9].map(u64::to_ne_bytes).concat();
        payload.extend(attribute(libc::IFLA_STATS64, &counters));
        assert_eq!(LinkCounters::read(&payload), Some(LinkCounters { index: 7, received: 5 }));
        assert_eq!(LinkCounters::read(&payload[..HEADER + 8]), None);
    }
}

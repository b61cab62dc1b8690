//! What the kernel counts at links.

use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::LinkHeader;
use nix::libc;
use rtnetlink::LinkUnspec;

use super::Selector;
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
    /// Bytes that it has received (`rx_bytes`).
    pub received_bytes: u64,
    /// Bytes that it has sent (`tx_bytes`).
    pub sent_bytes: u64,
}

impl Reply for LinkCounters {
    fn read(payload: &[u8]) -> Option<Self> {
        let header = LinkHeader::parse(payload).ok()?;
        // `struct rtnl_link_stats64` begins with `rx_packets`, `tx_packets`, `rx_bytes` and `tx_bytes`.
        let counters = find(payload.get(HEADER..)?, libc::IFLA_STATS64)?;
        let counter = |at: usize| {
            let counter = counters.get(at * size_of::<u64>()..)?.first_chunk()?;
            Some(u64::from_ne_bytes(*counter))
        };
        let (received, received_bytes, sent_bytes) = (counter(0)?, counter(2)?, counter(3)?);
        Some(Self { index: header.index, received, received_bytes, sent_bytes })
    }
}

/// Asks for the counters of one link.
pub fn counters_of(selector: Selector<'_>) -> Request<LinkCounters> {
    let message = RouteNetlinkMessage::GetLink(selector.message().build());
    Request::new(format!("read the counters of {selector}"), message, 0)
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
    fn counters_are_read_at_their_places() {
        let mut payload = vec![0; HEADER];
        payload[4..8].copy_from_slice(&7i32.to_ne_bytes());
        assert_eq!(LinkCounters::read(&payload), None);
        let counters = [5u64, 9, 500, 900].map(u64::to_ne_bytes).concat();
        payload.extend(attribute(libc::IFLA_STATS64, &counters));
        assert_eq!(
            LinkCounters::read(&payload),
            Some(LinkCounters { index: 7, received: 5, received_bytes: 500, sent_bytes: 900 })
        );
        assert_eq!(LinkCounters::read(&payload[..HEADER + 8]), None);
    }
}

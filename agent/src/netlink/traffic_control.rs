//! What messages about filters and queueing disciplines have in common (linux/rtnetlink.h, linux/pkt_sched.h).

use super::socket;

/// Bytes of `struct tcmsg`.
pub(super) const TCMSG: usize = 20;

/// The name of a filter's or discipline's kind.
pub(super) const TCA_KIND: u16 = 1;

/// Its options; what is in there depends on the kind.
pub(super) const TCA_OPTIONS: u16 = 2;

/// The parents of filters on an interface's clsact hooks: `TC_H_CLSACT` with the minor number of each direction.
pub(crate) const CLSACT_INGRESS: u32 = 0xffff_fff2;
pub(crate) const CLSACT_EGRESS: u32 = 0xffff_fff3;

/// The front of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    /// The interface.
    pub(super) ifindex: u32,
    /// The filter's or discipline's handle.
    pub(super) handle: u32,
    /// A filter's priority.
    pub(super) priority: u16,
}

/// Reads the front of a message, and gives what follows it.
pub(super) fn split(payload: &[u8]) -> Option<(Head, &[u8])> {
    let (head, attributes) = payload.split_first_chunk::<TCMSG>()?;
    let head = Head {
        ifindex: socket::number(&head[4..8])?,
        handle: socket::number(&head[8..12])?,
        priority: (socket::number(&head[16..20])? >> 16) as u16,
    };
    Some((head, attributes))
}

/// A request about what hangs below `parent` on an interface.
pub(super) fn request(ifindex: u32, parent: u32) -> [u8; TCMSG] {
    let mut request = [0; TCMSG];
    request[4..8].copy_from_slice(&ifindex.to_ne_bytes());
    request[12..16].copy_from_slice(&parent.to_ne_bytes());
    request
}

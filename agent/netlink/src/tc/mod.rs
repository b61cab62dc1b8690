//! Traffic control: queueing disciplines, classes and filters (linux/rtnetlink.h, linux/pkt_sched.h).
//!
//! The crates have no types for the options of `tbf`, `htb` and classic BPF; those are written by hand.

mod filter;
mod htb;
pub mod selector;
pub mod shares;
mod tbf;

pub use filter::{Filter, filters};
pub use htb::{CLASS, Classifier};
pub use tbf::HANDLE;

use netlink_packet_core::DefaultNla;
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::tc::{TcAttribute, TcHandle, TcHeader, TcMessage, TcOption};
use nix::errno::Errno;

use crate::attribute::{find, text};
use crate::connection::Connection;
use crate::error::{NetlinkError, unless};
use crate::request::{Reply, Request};

pub use htb::{is_set as is_htb_set, set as set_htb};
pub use tbf::{is_set as is_tbf_set, set as set_tbf};

/// Bytes of `struct tcmsg`.
const HEADER: usize = 20;
const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;

/// The parents of filters on an interface's clsact hooks: `TC_H_CLSACT` with the minor number of each direction.
pub const CLSACT_INGRESS: u32 = 0xffff_fff2;
/// See [`CLSACT_INGRESS`].
pub const CLSACT_EGRESS: u32 = 0xffff_fff3;
/// `TC_H_ROOT`.
const ROOT: u32 = 0xffff_ffff;

/// `TC_LINKLAYER_ETHERNET`: lengths need no table.
const ETHERNET: u8 = 1;
/// Bytes of `struct tc_ratespec`, and where the rate is in it.
const RATESPEC: usize = 12;
const RATE: usize = 8;

/// A rate that is held by a token bucket, and the queue in front of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Bytes of frames a second.
    pub rate: u64,
    /// Bytes that may pass at once.
    pub burst: u32,
    /// Bytes of the largest packet that passes whole, at most a burst; larger ones are cut into frames.
    pub whole: u32,
    /// Bytes that may wait.
    pub queue: u32,
}

/// A queueing discipline, class or filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrafficControl {
    /// The interface.
    pub index: u32,
    /// Its handle.
    pub handle: u32,
    /// What it hangs below.
    pub parent: u32,
    /// A filter's priority.
    pub priority: u16,
    /// The same with its protocol behind it.
    pub(crate) info: u32,
    /// Its kind, as `tbf` or `bpf`.
    pub kind: String,
    /// Its options' bytes; what they are depends on the kind.
    pub(crate) options: Vec<u8>,
}

impl Reply for TrafficControl {
    fn read(payload: &[u8]) -> Option<Self> {
        let header = TcHeader::parse(payload).ok()?;
        let attributes = payload.get(HEADER..)?;
        Some(Self {
            index: header.index as u32,
            handle: header.handle.into(),
            parent: header.parent.into(),
            priority: (header.info >> 16) as u16,
            info: header.info,
            kind: find(attributes, TCA_KIND).map(text).unwrap_or_default(),
            options: find(attributes, TCA_OPTIONS).unwrap_or_default().to_vec(),
        })
    }
}

/// A message about what hangs below `parent` on an interface.
fn about(index: u32, handle: u32, parent: u32) -> TcMessage {
    let mut message = TcMessage::with_index(index as i32);
    (message.header.handle, message.header.parent) = (TcHandle::from(handle), TcHandle::from(parent));
    message
}

fn with(mut message: TcMessage, kind: &str, options: Vec<DefaultNla>) -> TcMessage {
    let options = options.into_iter().map(TcOption::Other).collect();
    message.attributes = vec![TcAttribute::Kind(kind.to_owned()), TcAttribute::Options(options)];
    message
}

/// Stops shaping what leaves by an interface; the interface, or our discipline, may be gone.
pub fn clear_root(connection: &mut Connection, index: u32) -> Result<(), NetlinkError> {
    clear(connection, index, HANDLE)
}

/// Removes the root discipline that has this handle.
fn clear(connection: &mut Connection, index: u32, handle: u32) -> Result<(), NetlinkError> {
    let message = RouteNetlinkMessage::DelQueueDiscipline(about(index, handle, ROOT));
    let outcome = connection.run(Request::new("remove the queueing discipline", message, 0));
    // EINVAL: another user's is at the root.
    unless(outcome, |error| error.is_missing() || error.errno() == Some(Errno::EINVAL))
}

//! Asks for single connections, and has them live on.

use netlink_packet_netfilter::conntrack::ConntrackAttribute;
use nix::libc::NETLINK_NETFILTER;

use super::liberal::{CHANGE, PATIENCE};
use super::{GET, TrackedConnection, Tuple};
use crate::attribute::emitted;
use crate::connection::Connection;
use crate::error::NetlinkError;
use crate::request::Request;

/// How many are asked for at a time: their answers have to find room in the socket's buffer.
const TOGETHER: usize = 64;

/// A socket for such questions, in the network namespace of the thread that opened it.
#[derive(Debug)]
pub struct Tracker(Connection);

impl Tracker {
    /// Opens one.
    ///
    /// # Errors
    /// [`NetlinkError::Socket`].
    pub fn open() -> Result<Self, NetlinkError> {
        Ok(Self(Connection::of(NETLINK_NETFILTER)?.with_patience(PATIENCE)?))
    }

    /// The connections that have these tuples, of protocols with ports, in either direction and in the zone 0; in the order of the tuples.
    ///
    /// # Errors
    /// [`NetlinkError::Socket`]: nothing is known of any of them.
    pub fn find(&mut self, tuples: &[Tuple]) -> Result<Vec<Option<TrackedConnection>>, NetlinkError> {
        let mut found = Vec::with_capacity(tuples.len());
        for some in tuples.chunks(TOGETHER) {
            let said = self.0.batch(some.iter().map(request).collect())?;
            found.extend(said.into_iter().map(|said| said.ok()?.first()));
        }
        Ok(found)
    }

    /// Has these connections live on for so many seconds if nothing comes any more. Those that are gone stay so.
    ///
    /// # Errors
    /// [`NetlinkError::Socket`]: nothing is known of any of them.
    pub fn prolong(&mut self, tuples: &[Tuple], seconds: u32) -> Result<(), NetlinkError> {
        let change = emitted(&ConntrackAttribute::CtaTimeout(seconds));
        for some in tuples.chunks(TOGETHER) {
            let request = |tuple: &Tuple| {
                let payload = [tuple.message(), change.clone()].concat();
                Request::raw("have a tracked connection live on", CHANGE, 0, payload)
            };
            self.0.batch(some.iter().map(request).collect())?;
        }
        Ok(())
    }
}

fn request(tuple: &Tuple) -> Request {
    Request::raw("find a tracked connection", GET, 0, tuple.message())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_tracked_is_not_found() {
        let (source, destination) = ("127.0.0.1:1".parse().unwrap(), "127.0.0.1:0".parse().unwrap());
        let nobody = Tuple { protocol: 17, source, destination };
        // A kernel without connection tracking has no such socket, or refuses.
        if let Ok(mut tracker) = Tracker::open() {
            assert_eq!(tracker.find(&[nobody; 3]).unwrap(), [None; 3]);
        }
    }
}

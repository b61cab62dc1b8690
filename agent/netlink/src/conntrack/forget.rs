//! Has connection tracking forget connections, whose next packets then begin others.

use nix::libc::{NETLINK_NETFILTER, NFNL_SUBSYS_CTNETLINK};

use super::Tuple;
use crate::connection::Connection;
use crate::error::NetlinkError;
use crate::request::Request;

/// `IPCTNL_MSG_CT_DELETE`.
const DELETE: u16 = (NFNL_SUBSYS_CTNETLINK as u16) << 8 | 2;

/// How many are sent at a time: all of them are one datagram.
const TOGETHER: usize = 200;

/// Forgets the connections whose first packets were like these, of a protocol with ports. Returns how many there were.
///
/// # Errors
/// Every kind of [`NetlinkError`]; some may have been forgotten.
pub fn forget(originals: &[Tuple]) -> Result<usize, NetlinkError> {
    let mut connection = Connection::of(NETLINK_NETFILTER)?;
    let mut forgotten = 0;
    for some in originals.chunks(TOGETHER) {
        for said in connection.batch(some.iter().map(request).collect())? {
            match said {
                Ok(_) => forgotten += 1,
                // It has ended meanwhile.
                Err(error) if error.is_missing() => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(forgotten)
}

fn request(original: &Tuple) -> Request {
    Request::raw("forget a tracked connection", DELETE, 0, original.message())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_named_by_its_first_packet() {
        let (source, destination) = ("10.0.0.2:4000".parse().unwrap(), "10.0.0.3:80".parse().unwrap());
        let request = request(&Tuple { protocol: 17, source, destination });
        #[rustfmt::skip]
        let expected = [
            2, 0, 0, 0,
            52, 0, 1, 0x80, // CTA_TUPLE_ORIG
            20, 0, 1, 0x80, 8, 0, 1, 0, 10, 0, 0, 2, 8, 0, 2, 0, 10, 0, 0, 3,
            28, 0, 2, 0x80, 5, 0, 1, 0, 17, 0, 0, 0, 6, 0, 2, 0, 0x0f, 0xa0, 0, 0, 6, 0, 3, 0, 0, 80, 0, 0,
        ];
        assert_eq!(request.payload(), expected);
    }
}

//! Token bucket filters (`tbf`) at the root of an interface (linux/pkt_sched.h, net/sched/sch_tbf.c).
//!
//! Ours have a handle of their own. Without `NLM_F_REPLACE` the kernel changes a discipline of that handle in place, and
//! refuses to put one where there is another user's.

use nix::libc;

use super::attribute::attribute;
use super::socket::{self, NetlinkError, RequestSocket};
use super::traffic_control::{TCA_KIND, TCA_OPTIONS, TCMSG, split};
use crate::shape::Bucket;

/// Our handle, "SH" as the major number.
pub(super) const HANDLE: u32 = 0x5348_0000;

/// `TC_H_ROOT`.
pub(super) const ROOT: u32 = 0xffff_ffff;

const TCA_TBF_PARMS: u16 = 1;
const TCA_TBF_RATE64: u16 = 4;
const TCA_TBF_BURST: u16 = 6;

/// `TC_LINKLAYER_ETHERNET`: lengths need no table.
const ETHERNET: u8 = 1;

/// Bytes of `struct tc_ratespec`, and where the rate is in it.
const RATESPEC: usize = 12;
const RATE: usize = 8;

/// What the kernel says of a bucket of ours: rate in bytes a second, and bytes that may wait.
type Said = (u64, u32);

/// Shapes what leaves by an interface, or changes how. What waits goes on waiting.
///
/// # Errors
/// Netlink's: `EEXIST` where another user's discipline is at the root, `ENOENT` where the kernel has no `tbf`.
pub fn set(socket: &mut RequestSocket, ifindex: u32, bucket: Bucket) -> Result<(), NetlinkError> {
    let mut payload = root(ifindex, HANDLE).to_vec();
    payload.extend(attribute(TCA_KIND, b"tbf\0"));
    payload.extend(attribute(TCA_OPTIONS, &options(bucket)));
    socket.create(libc::RTM_NEWQDISC, &payload)
}

/// Stops shaping what leaves by an interface; it, or our discipline, may be gone.
///
/// # Errors
/// Netlink's.
pub fn clear(socket: &mut RequestSocket, ifindex: u32) -> Result<(), NetlinkError> {
    match socket.get(libc::RTM_DELQDISC, &root(ifindex, HANDLE), |_| {}) {
        Err(error) if error.is_absent() => Ok(()),
        // Somebody else's is at the root.
        Err(NetlinkError::Refused(error)) if error.raw_os_error() == Some(libc::EINVAL) => Ok(()),
        other => other,
    }
}

/// Whether an interface is shaped so, by the kernel's own word; none if it is not shaped by us at all.
///
/// # Errors
/// Netlink's.
pub fn is_set(
    socket: &mut RequestSocket,
    ifindex: u32,
    bucket: Bucket,
) -> Result<Option<bool>, NetlinkError> {
    let ours = |payload: &[u8]| {
        let (head, attributes) = split(payload)?;
        (head.ifindex == ifindex && head.handle == HANDLE).then(|| said(attributes))
    };
    let found = socket.dump(libc::RTM_GETQDISC, &root(0, 0), ours)?;
    Ok(found.first().map(|said| *said == Some((bucket.rate, bucket.queue))))
}

/// The front of a message about an interface's root.
fn root(ifindex: u32, handle: u32) -> [u8; TCMSG] {
    let mut message = [0; TCMSG];
    message[4..8].copy_from_slice(&ifindex.to_ne_bytes());
    message[8..12].copy_from_slice(&handle.to_ne_bytes());
    message[12..16].copy_from_slice(&ROOT.to_ne_bytes());
    message
}

fn options(bucket: Bucket) -> Vec<u8> {
    let rate = u32::try_from(bucket.rate).unwrap_or(u32::MAX);
    // struct tc_tbf_qopt: rate, peak rate (none), limit, buffer and mtu (both said as a burst instead).
    let mut parameters = [0; 2 * RATESPEC + 12];
    parameters[1] = ETHERNET;
    parameters[RATE..RATESPEC].copy_from_slice(&rate.to_ne_bytes());
    parameters[RATESPEC + 1] = ETHERNET;
    parameters[2 * RATESPEC..2 * RATESPEC + 4].copy_from_slice(&bucket.queue.to_ne_bytes());
    let mut options = Vec::new();
    options.extend(attribute(TCA_TBF_PARMS, &parameters));
    if rate == u32::MAX {
        options.extend(attribute(TCA_TBF_RATE64, &bucket.rate.to_ne_bytes()));
    }
    options.extend(attribute(TCA_TBF_BURST, &bucket.burst.to_ne_bytes()));
    options
}

/// Reads what is behind the front of an answer.
fn said(attributes: &[u8]) -> Option<Said> {
    let (mut rate, mut rate64, mut queue) = (None, None, None);
    socket::attributes(attributes, |kind, value| {
        if kind != TCA_OPTIONS {
            return;
        }
        socket::attributes(value, |kind, value| match kind {
            TCA_TBF_PARMS => {
                rate = value.get(RATE..).and_then(socket::number).map(u64::from);
                queue = value.get(2 * RATESPEC..).and_then(socket::number);
            }
            TCA_TBF_RATE64 => rate64 = value.first_chunk().copied().map(u64::from_ne_bytes),
            _ => {}
        });
    });
    Some((rate64.or(rate)?, queue?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_is_what_is_read_back() {
        for rate in [1, 1_250_000, u64::from(u32::MAX) + 1] {
            let bucket = Bucket { rate, burst: 15_000, queue: 48_000 };
            let mut attributes = Vec::new();
            attributes.extend(attribute(TCA_KIND, b"tbf\0"));
            attributes.extend(attribute(TCA_OPTIONS, &options(bucket)));
            assert_eq!(said(&attributes), Some((rate, 48_000)));
        }
    }

    #[test]
    fn an_answer_cut_anywhere_is_no_bucket() {
        let mut attributes = Vec::new();
        attributes.extend(attribute(TCA_OPTIONS, &options(Bucket { rate: 1, burst: 2, queue: 3 })));
        for length in 0..2 * RATESPEC {
            assert_eq!(said(&attributes[..length]), None);
        }
    }
}

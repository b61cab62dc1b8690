//! Token bucket filters (`tbf`) at the root of an interface (linux/pkt_sched.h, net/sched/sch_tbf.c).
//!
//! Ours have a handle of their own. Without `NLM_F_REPLACE` the kernel changes a discipline of that handle in place, and refuses to
//! put one where there is another user's.

use netlink_packet_core::{DefaultNla, NLM_F_CREATE};
use netlink_packet_route::RouteNetlinkMessage;

use super::{ETHERNET, RATE, RATESPEC, ROOT, Rate, TrafficControl, about, with};
use crate::attribute::{find, number};
use crate::connection::Connection;
use crate::error::NetlinkError;
use crate::request::Request;

/// Our handle, "SH" as the major number.
pub const HANDLE: u32 = 0x5348_0000;

const TCA_TBF_PARMS: u16 = 1;
const TCA_TBF_RATE64: u16 = 4;
const TCA_TBF_PRATE64: u16 = 5;
const TCA_TBF_BURST: u16 = 6;
const TCA_TBF_PBURST: u16 = 7;

/// Bytes a second that hold up nothing: 64 KiB take no nanosecond.
pub(super) const UNHINDERED: u64 = 1_000_000_000_000_000;

/// Shapes what leaves by an interface, or changes how. What waits goes on waiting.
///
/// # Errors
/// [`NetlinkError::Refused`]: `EEXIST` where another user's discipline is at the root, `ENOENT` where the kernel has no `tbf`.
pub fn set(connection: &mut Connection, index: u32, rate: Rate) -> Result<(), NetlinkError> {
    let message = with(about(index, HANDLE, ROOT), "tbf", options(rate));
    let message = RouteNetlinkMessage::NewQueueDiscipline(message);
    connection.run(Request::new("set the token bucket", message, NLM_F_CREATE))
}

/// Whether an interface is shaped so, by the kernel's own word; none if it is not shaped by us at all.
pub fn is_set(connection: &mut Connection, index: u32, rate: Rate) -> Result<Option<bool>, NetlinkError> {
    let message = RouteNetlinkMessage::GetQueueDiscipline(about(index, 0, ROOT));
    let found = connection.list(Request::<TrafficControl>::dump("list the queueing disciplines", message))?;
    let ours = found.iter().find(|found| found.index == index && found.handle == HANDLE);
    Ok(ours.map(|found| said(&found.options) == Some((rate.rate, rate.queue))))
}

/// A packet larger than the burst is cut into frames, and so is one larger than the peak's: a packet that is larger than the queue would be
/// lost each time that it is sent. So a peak that hinders nothing says which packets pass whole.
pub(super) fn options(Rate { rate, burst, whole, queue }: Rate) -> Vec<DefaultNla> {
    let low = u32::try_from(rate).unwrap_or(u32::MAX);
    let has_peak = whole < burst && rate < UNHINDERED;
    // struct tc_tbf_qopt: rate, peak rate, limit, buffer and mtu (both said as a burst instead).
    let mut parameters = vec![0; 2 * RATESPEC + 12];
    parameters[1] = ETHERNET;
    parameters[RATE..RATESPEC].copy_from_slice(&low.to_ne_bytes());
    parameters[RATESPEC + 1] = ETHERNET;
    if has_peak {
        parameters[RATESPEC + RATE..2 * RATESPEC].copy_from_slice(&u32::MAX.to_ne_bytes());
    }
    parameters[2 * RATESPEC..2 * RATESPEC + 4].copy_from_slice(&queue.to_ne_bytes());
    let mut options = vec![DefaultNla::new(TCA_TBF_PARMS, parameters)];
    if low == u32::MAX {
        options.push(DefaultNla::new(TCA_TBF_RATE64, rate.to_ne_bytes().to_vec()));
    }
    options.push(DefaultNla::new(TCA_TBF_BURST, burst.to_ne_bytes().to_vec()));
    if has_peak {
        options.push(DefaultNla::new(TCA_TBF_PRATE64, UNHINDERED.to_ne_bytes().to_vec()));
        options.push(DefaultNla::new(TCA_TBF_PBURST, whole.to_ne_bytes().to_vec()));
    }
    options
}

/// The rate in bytes a second, and the bytes that may wait.
fn said(options: &[u8]) -> Option<(u64, u32)> {
    let parameters = find(options, TCA_TBF_PARMS)?;
    let rate = number(parameters.get(RATE..)?)?;
    let rate64 = find(options, TCA_TBF_RATE64).and_then(|rate| rate.first_chunk());
    let rate = rate64.map_or(rate.into(), |rate| u64::from_ne_bytes(*rate));
    Some((rate, number(parameters.get(2 * RATESPEC..)?)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribute::emitted;

    fn bytes(rate: u64) -> Vec<u8> {
        emitted(&&options(Rate { rate, burst: 15_000, whole: 15_000, queue: 48_000 })[..])
    }

    #[test]
    fn packets_smaller_than_the_burst_are_cut_by_a_peak() {
        let peak = |burst, rate| {
            let bytes = emitted(&&options(Rate { rate, burst, whole: 77_680, queue: 187_500 })[..]);
            assert_eq!(said(&bytes), Some((rate, 187_500)));
            find(&bytes, TCA_TBF_PBURST).and_then(number)
        };
        assert_eq!(peak(625_000, 12_500_000), Some(77_680));
        assert_eq!(peak(77_680, 12_500_000), None, "the burst says it");
        assert_eq!(peak(625_000, UNHINDERED), None, "a peak must be above the rate");
    }

    #[test]
    fn what_is_asked_for_is_what_is_read_back() {
        for rate in [1, 1_250_000, u64::from(u32::MAX) + 1] {
            assert_eq!(said(&bytes(rate)), Some((rate, 48_000)));
        }
    }

    #[test]
    fn an_answer_cut_anywhere_is_no_bucket() {
        let bytes = bytes(1);
        assert!((0..2 * RATESPEC).all(|length| said(&bytes[..length]).is_none()));
    }
}

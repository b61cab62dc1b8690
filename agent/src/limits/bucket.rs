//! What a limit is as a token bucket: bits and bursts as an operator writes them, made into bytes that can work.
//!
//! A rate is one of IP packets. The kernel counts frames, so a bucket's own rate is larger by what the Ethernet headers of full
//! frames take; smaller packets come to less than the rate, and none to more.
//!
//! A burst longer than [`LONGEST_BURST`] is cut to it: runtimes send 4294967295 bits where they mean none in particular.
//! One that could not hold a few frames, or what passes between two ticks of a timer, is raised. What waits in the queue
//! waits no longer than [`LONGEST_WAIT`], unless the rate is so low that the least of queues takes longer.

use std::time::Duration;

use shunt_agent_api::Rate;
use shunt_dataplane::abi::policer::{PRICED, Policer};
use shunt_netlink::tc;

/// How much may pass at once after a pause, as the time that it would take at the rate.
pub const LONGEST_BURST: Duration = Duration::from_millis(50);

/// The least that may pass at once: timers are late by about that.
const SHORTEST_BURST: Duration = Duration::from_millis(1);

/// How long a packet may wait beside a flow that fills the queue. The reference plugin's packets wait 25 ms and the
/// whole burst's time more.
pub const LONGEST_WAIT: Duration = Duration::from_millis(15);

/// Frames that fit into a burst, whatever the rate.
const BURST_FRAMES: u64 = 10;

/// Frames that may wait behind the largest packet, whatever the rate.
const QUEUE_FRAMES: u64 = 16;

/// What a sender hands down as one packet unless its link takes more (`bigTcp`). One that passes whole has to fit into the queue, or it
/// would be dropped each time that it is sent; larger ones are cut into frames.
const LARGEST_PACKET: u64 = 64 << 10;

/// Frames' worth of headers that the kernel counts with it: one for each segment (`qdisc_pkt_len_init`).
const HEADER_FRAMES: u64 = 8;

/// How much more than the bucket lets through a policer behind it takes: a twentieth of the rate, for lengths that are
/// counted otherwise, and what a busy node makes wait between the two.
const POLICED_SHARE: u64 = 20;
const POLICED_DELAY: Duration = Duration::from_millis(100);

/// Bytes of an Ethernet header, and with a tag.
const HEADER: u64 = 14;
const TAGGED_HEADER: u64 = 18;

/// How long a port may flood as it likes after a pause, at the rate that it may flood on with: a host that comes up asks for many
/// neighbours at once.
const LONGEST_STORM: Duration = Duration::from_secs(1);

/// What takes so many packets a second, which are not 0.
pub fn by_packets(rate: u32) -> Policer {
    const SECOND: u64 = 1_000_000_000;
    Policer { due: 0, price: SECOND / u64::from(rate.max(1)), tolerance: LONGEST_STORM.as_nanos() as u64 }
}

/// A token bucket and the queue behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// Bytes of frames a second.
    pub rate: u64,
    /// Bytes that may pass at once.
    pub burst: u32,
    /// Bytes of the largest packet that passes whole.
    pub whole: u32,
    /// Bytes that may wait.
    pub queue: u32,
}

impl Bucket {
    /// The bucket of a limit on an interface with this MTU.
    pub fn of(limit: Rate, mtu: u32) -> Self {
        let rate = (limit.rate / 8).max(1);
        let mtu = u64::from(mtu.max(1));
        let frame = mtu + TAGGED_HEADER;
        let least = (BURST_FRAMES * frame).max(within(rate, SHORTEST_BURST));
        let burst = (limit.burst / 8).min(within(rate, LONGEST_BURST)).max(least);
        let queue = within(rate, LONGEST_WAIT).max(burst.min(LARGEST_PACKET) + QUEUE_FRAMES * frame);
        let framed = u128::from(rate) * u128::from(mtu + HEADER) / u128::from(mtu);
        let rate = u64::try_from(framed).unwrap_or(u64::MAX);
        let whole = burst.min(LARGEST_PACKET + HEADER_FRAMES * frame);
        Self { rate, burst: capped(burst), whole: capped(whole), queue: capped(queue) }
    }

    /// What lets everything through that has been through the bucket, and little more. Nothing is due yet.
    pub fn policer(self) -> Policer {
        let rate = self.rate.saturating_add(self.rate / POLICED_SHARE);
        let burst = nanoseconds(u64::from(self.burst), self.rate);
        let delay = POLICED_DELAY.as_nanos() as u64;
        Policer { due: 0, price: nanoseconds(PRICED, rate).max(1), tolerance: burst.saturating_add(delay) }
    }
}

impl From<Bucket> for tc::Rate {
    fn from(Bucket { rate, burst, whole, queue }: Bucket) -> Self {
        Self { rate, burst, whole, queue }
    }
}

/// Bytes that pass in `time`.
fn within(rate: u64, time: Duration) -> u64 {
    let bytes = u128::from(rate) * time.as_millis() / 1000;
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

/// How long `bytes` bytes take at `rate` bytes a second.
fn nanoseconds(bytes: u64, rate: u64) -> u64 {
    u64::try_from(u128::from(bytes) * 1_000_000_000 / u128::from(rate)).unwrap_or(u64::MAX)
}

fn capped(bytes: u64) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bucket(rate: u64, burst: u64) -> Bucket {
        Bucket::of(Rate { rate, burst }, 1500)
    }

    #[test]
    fn the_rate_is_one_of_packets_without_their_ethernet_headers() {
        assert_eq!(bucket(100_000_000, 800_000).rate, 12_500_000 * 1514 / 1500);
        assert_eq!(Bucket::of(Rate { rate: 80, burst: 8 }, 0).rate, 150, "whatever the MTU");
    }

    #[test]
    fn an_absurd_burst_is_cut_to_its_longest_time() {
        for absurd in [4_294_967_295, 34_359_738_359, u64::MAX] {
            assert_eq!(bucket(100_000_000, absurd).burst, 625_000, "50 ms of 100 Mbit/s");
        }
    }

    #[test]
    fn a_burst_in_bounds_is_taken_as_it_is() {
        assert_eq!(bucket(100_000_000, 800_000).burst, 100_000);
    }

    #[test]
    fn a_burst_too_small_for_a_frame_is_raised() {
        assert_eq!(bucket(1_000_000, 8).burst, 10 * 1518);
        assert_eq!(bucket(1_000_000_000, 8).burst, 125_000, "1 ms of 1 Gbit/s");
    }

    #[test]
    fn the_largest_packet_that_is_not_cut_fits_into_the_queue() {
        for rate in [1_000_000, 10_000_000, 20_000_000, 100_000_000, 1_000_000_000] {
            let bucket = bucket(rate, u64::MAX);
            assert!(u64::from(bucket.queue) > u64::from(bucket.burst).min(LARGEST_PACKET), "{bucket:?}");
        }
    }

    #[test]
    fn whatever_is_not_cut_fits_into_the_queue_and_64_kib_are_not_cut_for_their_headers() {
        for rate in [1_000_000, 20_000_000, 100_000_000, 1_000_000_000, 100_000_000_000] {
            for burst in [8, 1_000_000, u64::MAX] {
                let Bucket { burst, whole, queue, .. } = bucket(rate, burst);
                assert!(whole <= burst && whole < queue, "{rate}: {whole} of {burst}, {queue} may wait");
            }
        }
        // 46 segments of 1448 bytes, each with a header of 66.
        assert!(bucket(100_000_000, u64::MAX).whole > 65_536 + 45 * 66);
    }

    #[test]
    fn a_policer_is_a_twentieth_wider_than_its_bucket() {
        let bucket = bucket(100_000_000, 800_000);
        let policer = bucket.policer();
        // 12.6 MB/s of frames: 16 KiB take 1.30 ms, and 1.24 ms at a twentieth more; the burst of 100 kB takes 7.9 ms.
        assert_eq!((policer.price, policer.tolerance), (1_236_761, 107_926_024));
    }

    #[test]
    fn any_rate_makes_a_policer_whose_prices_do_not_overflow() {
        for rate in [1, 8, 1000, 1_000_000_000, u64::MAX] {
            let policer = bucket(rate, u64::MAX).policer();
            let largest_packet = 512 << 10;
            assert!(policer.price.checked_mul(largest_packet).is_some() && policer.price > 0, "{policer:?}");
        }
    }

    #[test]
    fn any_rate_makes_a_bucket_that_lets_frames_through() {
        for rate in [1, 7, 8, 1000, 1_000_000, u64::from(u32::MAX) * 8, u64::MAX] {
            for burst in [1, 8, 12_000, u64::MAX] {
                let bucket = bucket(rate, burst);
                assert!(
                    bucket.rate > 0 && bucket.burst >= 10 * 1518 && bucket.queue >= 16 * 1518,
                    "{bucket:?}"
                );
            }
        }
    }
}

//! What each class gets.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use shunt_netlink::tc::shares::{Class, HANDLE, LINK, REST};

use crate::kernel::Shares;
use crate::limits::bucket::Bucket;
use crate::resources::Node;

/// How much may pass at once, as the time that it takes; at least a segment of the largest size.
const BURST: Duration = Duration::from_millis(1);
const LEAST_BURST: u64 = 128 << 10;

/// How long a packet of the rest may wait, as for a limited port.
const LONGEST_WAIT: Duration = Duration::from_millis(15);
const LEAST_QUEUE: u64 = 256 << 10;

/// Bytes of a frame on the wire that are not in it: check sequence, preamble and gap (IEEE 802.3).
const WIRE: u16 = 24;

/// The rest always has a hundredth, whatever claims are had: without it a node could not be reached.
const REST_SHARE: u64 = 100;

/// How much more than its share a claim may have of what is idle: a twentieth. Its limit is held before the queue, and the lengths that
/// are counted here are not quite the same.
const MORE: u64 = 20;

/// One claimed attachment.
#[derive(Clone, Debug)]
struct Claimed<'a> {
    minor: u16,
    bucket: Bucket,
    host: &'a str,
    ips: &'a [IpAddr],
}

impl Node {
    /// The shares of an uplink that sends so much, bits a second.
    pub(super) fn desired_shares(&self, uplink: &str, total: u64) -> Shares {
        let claimed: Vec<_> = self.claimed_of(uplink).collect();
        let total = (total / 8).max(1);
        let sum = claimed.iter().fold(0_u64, |sum, it| sum.saturating_add(it.bucket.rate));
        let most = total - total / REST_SHARE;
        let mut shares = Shares::default();
        shares.classes.insert(LINK, link(total));
        shares.classes.insert(REST, rest(total, total - sum.min(most)));
        for Claimed { minor, bucket, host, .. } in claimed {
            let class = share(bucket, total, sum.max(1), most);
            shares.classes.insert(minor, class);
            shares.from.insert(host.to_owned(), minor);
        }
        shares
    }

    /// The classes of what claimed attachments send and the kernel routes, by their addresses.
    pub(in crate::resources) fn claimed_sources(&self) -> BTreeMap<IpAddr, u32> {
        let uplinks = self.ledger.guaranteed().filter(|(_, total)| total.is_ok());
        let claimed = uplinks.flat_map(|(uplink, _)| self.claimed_of(uplink));
        claimed.flat_map(|it| it.ips.iter().map(move |ip| (*ip, HANDLE | u32::from(it.minor)))).collect()
    }

    fn claimed_of<'a>(&'a self, uplink: &str) -> impl Iterator<Item = Claimed<'a>> {
        let attachments = self.registry.attachments().filter(move |known| {
            let port = &known.port;
            let is_claimed = port.pod.as_ref().is_some_and(|pod| pod.claimed.is_some());
            is_claimed && self.ledger.uplink_of(&port.key.network) == Some(uplink)
        });
        attachments.filter_map(|known| {
            let port = &known.port;
            // A port has a counter slot of its own, which is less than the two numbers that are taken.
            let minor = u16::try_from(known.slot).ok().filter(|slot| (1..LINK).contains(slot))?;
            let bucket = Bucket::of(port.bandwidth.egress?, port.mtu);
            Some(Claimed { minor, bucket, host: &port.host.name, ips: &port.ips })
        })
    }
}

fn link(total: u64) -> Class {
    Class { rate: total, ceil: total, burst: burst(total), queue: 0, priority: 0, overhead: WIRE }
}

/// What no claim has: it yields to claims, and borrows all that is idle.
fn rest(total: u64, left: u64) -> Class {
    let queue = within(total, LONGEST_WAIT).max(LEAST_QUEUE);
    Class {
        rate: left.max(1),
        ceil: total,
        burst: burst(total),
        queue: capped(queue),
        priority: 1,
        overhead: 0,
    }
}

/// A claim's share; where more was promised than there is, each has its part of it.
fn share(bucket: Bucket, total: u64, sum: u64, most: u64) -> Class {
    let part = u128::from(bucket.rate) * u128::from(most.min(sum)) / u128::from(sum);
    let rate = u64::try_from(part).unwrap_or(u64::MAX).max(1);
    let ceil = bucket.rate.saturating_add(bucket.rate / MORE).min(total).max(rate);
    let burst = burst(rate).max(bucket.burst.min(burst(total)));
    Class { rate, ceil, burst, queue: bucket.queue.max(capped(LEAST_QUEUE)), priority: 0, overhead: 0 }
}

fn burst(rate: u64) -> u32 {
    capped(within(rate, BURST).max(LEAST_BURST))
}

/// Bytes that a rate takes so long for.
fn within(rate: u64, time: Duration) -> u64 {
    u64::try_from(u128::from(rate) * time.as_micros() / 1_000_000).unwrap_or(u64::MAX)
}

fn capped(bytes: u64) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use shunt_agent_api::Rate;

    use super::*;

    const GIGABIT: u64 = 125_000_000;

    fn bucket(rate: u64) -> Bucket {
        Bucket::of(Rate { rate: rate * 8, burst: u64::MAX }, 1500)
    }

    #[test]
    fn a_share_is_the_limits_own_rate_and_a_little_more_of_what_is_idle() {
        let bucket = bucket(GIGABIT / 4);
        let class = share(bucket, GIGABIT, bucket.rate, GIGABIT);
        assert_eq!((class.rate, class.ceil), (bucket.rate, bucket.rate + bucket.rate / 20));
        assert!(class.burst >= 128 << 10 && class.queue >= 256 << 10);
        let class = share(Bucket { rate: u64::MAX, ..bucket }, GIGABIT, u64::MAX, GIGABIT);
        assert!(class.rate <= GIGABIT && class.ceil == GIGABIT, "{class:?}");
    }

    #[test]
    fn where_more_is_promised_than_there_is_each_has_its_part_and_the_rest_a_hundredth() {
        let most = GIGABIT - GIGABIT / REST_SHARE;
        let (one, two) = (bucket(GIGABIT), bucket(GIGABIT / 2));
        let sum = one.rate + two.rate;
        let rates = [one, two].map(|it| share(it, GIGABIT, sum, most).rate);
        assert!(rates[0] + rates[1] <= most && rates[0] + rates[1] > most - 10, "{rates:?}");
        assert!(rates[0].abs_diff(2 * rates[1]) <= 2, "{rates:?}");
        assert_eq!(rest(GIGABIT, GIGABIT - sum.min(most)).rate, GIGABIT / REST_SHARE);
    }
}

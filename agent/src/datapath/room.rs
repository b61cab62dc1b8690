//! Sizes the maps of translated connections by the machine's memory, and each container's share of them.

use std::fs;

use shunt_dataplane::abi::MAX_KERNEL_FLOWS;
use shunt_dataplane::abi::share::Share;

use crate::config::MOST_FLOWS as MOST;

/// The least default number of connections.
const LEAST: u32 = 32_768;

/// The most entries that the map can have.
pub const MOST_ENTRIES: u32 = 2 * MOST;

/// Bytes of kernel memory of a connection: two entries of an LRU hash, each with its key (48), value (96), links (48) and a hash
/// bucket (16). Those of `ASSURED` are made as they come.
const CONNECTION: u64 = 416;

/// The fraction of the memory for them.
const PART: u64 = 256;

/// Containers that use up their shares before there is no room for others.
const PARTS: u32 = 4;

/// Nanoseconds.
const SECOND: u32 = 1_000_000_000;

/// How many entries each of the maps is made with.
pub fn flow_entries(wanted: Option<u32>) -> u32 {
    2 * wanted.unwrap_or_else(|| connections(memory().unwrap_or_default())).clamp(1, MOST)
}

/// A container's share, where `ASSURED` has room for `assured` entries and `FLOWS` for `flows`: at most `most` assured connections, or a quarter
/// of the room; and in a second as many openings that nobody answers as take a quarter of it, so that they leave others' a second to
/// be answered while no more than four flood.
pub fn share([assured, flows]: [u32; 2], most: Option<u32>) -> Share {
    let quarter = (flows / 2 / PARTS).max(1);
    let most = most.map_or(assured / PARTS, |connections| connections.saturating_mul(2));
    Share { most: most.clamp(2, assured.max(2)), price: SECOND / quarter, ..Share::default() }
}

/// How many of the kernel's flows so many containers may have together, and each whatever the others have: half of `KERNEL_FLOWS` goes to
/// whoever asks, at most a quarter to one; another quarter is parted. What is left is for those whose container is gone.
pub fn kernel_flows(containers: usize) -> (u32, u32) {
    let parts = u32::try_from(containers.next_power_of_two()).unwrap_or(u32::MAX);
    (MAX_KERNEL_FLOWS / 2, (MAX_KERNEL_FLOWS / 4 / parts).max(1))
}

fn connections(bytes: u64) -> u32 {
    u32::try_from(bytes / PART / CONNECTION).unwrap_or(MOST).clamp(LEAST, MOST)
}

/// The machine's memory in bytes, by `/proc/meminfo`.
fn memory() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let kilobytes = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    Some(kilobytes.trim().trim_end_matches(" kB").parse::<u64>().ok()? << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_machine_has_room_for_the_least_and_a_large_one_for_the_most() {
        assert_eq!(connections(1 << 30), LEAST);
        assert_eq!(connections(32 << 30), 322_638);
        assert_eq!(connections(1 << 40), MOST);
        assert_eq!(flow_entries(Some(1_000)), 2_000);
        let of = |room: u32, most| {
            let Share { most, price, .. } = share([2 * room; 2], most);
            (most, price)
        };
        assert_eq!(of(40_000, None), (20_000, 100_000), "10,000 connections, and as many openings a second");
        assert_eq!(of(40_000, Some(300)).0, 600);
        assert_eq!(of(100, Some(300)).0, 200, "no more than there is room for");
        assert_eq!(of(1, None), (2, 1_000_000_000));
        assert_eq!([1, 3, 250].map(|containers| kernel_flows(containers).1), [32_768, 8_192, 128]);
        assert!(memory().is_some_and(|bytes| bytes > 100 << 20));
    }
}

//! What the world's containers have of the tables of connections.

use std::collections::BTreeMap;

use shunt_dataplane::abi::share::Share;
use shunt_dataplane::abi::{KernelShare, NO_SLOT};
use shunt_dataplane::stages::share::Excess;

use super::bytes_packet::BytesPacket;
use super::world::{FAR, places};

/// The price of an opening, in nanoseconds.
pub const PRICE: u32 = 1_000;

/// How far all openings are paid for: as far as allows more of them, and far enough for a test to be over before, in nanoseconds.
const AHEAD: u64 = 900_000_000;

/// By slot, also that of connections which an earlier agent's programs have begun; `now` is `CLOCK_BOOTTIME` in nanoseconds.
pub fn shares(now: u64) -> Vec<(u32, Share)> {
    let share = Share { assured: 100, due: [now + AHEAD; 4], most: 1_000, price: PRICE };
    let of_places = places().map(|place| (place.slot(), share));
    of_places.chain([(NO_SLOT, Share { due: share.due, ..Share::default() })]).collect()
}

/// The same, where a container may have no more.
pub fn for_packet(packet: &BytesPacket, now: u64) -> BTreeMap<u32, Share> {
    let mut shares: BTreeMap<_, _> = shares(now).into_iter().collect();
    if let Some((slot, excess)) = packet.full {
        shares.entry(slot).and_modify(|share| match excess {
            Excess::Connections => share.assured = share.most.into(),
            Excess::Openings => share.due = [FAR; 4],
        });
    }
    shares
}

/// What they have of the kernel's flows: ou has all that it may have.
pub fn of_kernel_flows() -> Vec<(u32, KernelShare)> {
    let all = KernelShare { flows: 12, most: 20, least: 4, ..KernelShare::default() };
    let flows = |name: &str| if name == "ou" { 10 } else { 1 };
    let of_place = |place: &super::world::Place| {
        (place.slot(), KernelShare { flows: flows(place.name), ..KernelShare::default() })
    };
    [(NO_SLOT, all)].into_iter().chain(places().map(of_place)).collect()
}

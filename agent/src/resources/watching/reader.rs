//! Reads what the watched programs tell, and hands it to those who watch.
//!
//! The programs wake nobody, which would cost them more than the rest: the reader looks for itself.

use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use aya::maps::{MapData, PerCpuArray, RingBuf};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use nix::libc;
use nix::net::if_::if_indextoname;
use nix::time::{ClockId, clock_gettime};
use shunt_agent_api::PacketReport;
use shunt_dataplane::abi::watch::{WATCH_BUDGETS, WatchBudget, WatchedPacket, WatchedProgram};
use zerocopy::FromBytes as _;

use super::watcher::{Named, Shared, Watcher};
use crate::datapath::decisions::Said;

/// Until the next look where nothing was there. The buffer takes what comes meanwhile.
const PAUSE: Duration = Duration::from_millis(20);

/// Until the next look where something was there: the agent's thread may need the watchers.
const BREATH: Duration = Duration::from_millis(1);

/// How often it is counted what could not be told.
const COUNTING: Duration = Duration::from_millis(500);

/// Packets of one look, during which the agent's thread waits for the watchers.
const AT_A_TIME: usize = 256;

/// Bytes of both MAC addresses, behind which a tag goes.
const ADDRESSES: usize = 12;

/// [`WatchedPacket::verdict`] of copies: its target is a number of them.
const FLOODED: &str = "flood";

/// The thread that reads.
pub(super) struct Reader {
    packets: RingBuf<MapData>,
    budgets: PerCpuArray<MapData, WatchBudget>,
    shared: Arc<Shared>,
    counted: (u64, u64),
}

impl Reader {
    pub(super) fn new(
        packets: RingBuf<MapData>,
        budgets: PerCpuArray<MapData, WatchBudget>,
        shared: Arc<Shared>,
    ) -> Self {
        Self { packets, budgets, shared, counted: (0, 0) }
    }

    /// Reads until nobody watches.
    pub(super) fn read(mut self) {
        let (mut counted, mut sent) = (Instant::now(), Instant::now());
        while !self.shared.is_over() {
            let read = self.look();
            if read == 0 || sent.elapsed() >= PAUSE {
                sent = Instant::now();
                let (left_out, lost) = if counted.elapsed() >= COUNTING {
                    counted = sent;
                    self.count()
                } else {
                    (0, 0)
                };
                self.shared.watchers().iter_mut().for_each(|watcher| watcher.send(left_out, lost));
            }
            sleep(if read == 0 { PAUSE } else { BREATH });
        }
    }

    /// Takes over what is there, up to a bound. Returns how many packets.
    fn look(&mut self) -> usize {
        let since = since_1970();
        let mut read = 0;
        let mut watchers = self.shared.watchers();
        while read < AT_A_TIME
            && let Some(item) = self.packets.next()
        {
            read += 1;
            tell(&item, since, &self.shared, &mut watchers);
        }
        read
    }

    /// How many packets were left out and lost since the last time.
    fn count(&mut self) -> (u64, u64) {
        let all = (0..WATCH_BUDGETS).filter_map(|key| self.budgets.get(&key, 0).ok());
        let total =
            all.flat_map(|budgets| budgets.iter().map(|it| (it.left_out, it.lost)).collect::<Vec<_>>());
        let now = total.fold((0, 0), |sum, next| (sum.0 + next.0, sum.1 + next.1));
        let before = std::mem::replace(&mut self.counted, now);
        (now.0.saturating_sub(before.0), now.1.saturating_sub(before.1))
    }
}

/// Nanoseconds from 1970 to the start of the programs' clock.
fn since_1970() -> u64 {
    let read = |clock| clock_gettime(clock).map_or(Duration::ZERO, Duration::from);
    let [real, monotonic] = [ClockId::CLOCK_REALTIME, ClockId::CLOCK_MONOTONIC].map(read);
    u64::try_from(real.saturating_sub(monotonic).as_nanos()).unwrap_or_default()
}

fn tell(item: &[u8], since: u64, shared: &Shared, watchers: &mut [Watcher]) {
    let Ok((packet, bytes)) = WatchedPacket::read_from_prefix(item) else { return };
    let Some(said) = Said::of(packet.ifindex, packet.verdict, packet.target, packet.reason) else { return };
    let is_to_interface = said.verdict != FLOODED && packet.target != 0;
    if !watchers.iter().any(|watcher| watcher.wants(&packet, is_to_interface)) {
        return;
    }
    let bytes = bytes.get(..packet.captured as usize).unwrap_or_default();
    let report = report(&packet, bytes, since, said, is_to_interface, shared);
    for watcher in watchers.iter_mut().filter(|watcher| watcher.wants(&packet, is_to_interface)) {
        watcher.keep(report.clone());
    }
}

fn report(
    packet: &WatchedPacket,
    bytes: &[u8],
    since: u64,
    said: Said,
    is_to_interface: bool,
    shared: &Shared,
) -> PacketReport {
    let Named { ifname, network, container, namespace, pod } = name(packet.ifindex, shared);
    let tag = tag(packet, bytes);
    PacketReport {
        time: since + packet.time,
        ifname,
        ifindex: packet.ifindex,
        network,
        container,
        namespace,
        pod,
        program: WatchedProgram::from_number(packet.program).map_or("", WatchedProgram::name).to_owned(),
        verdict: said.verdict.to_owned(),
        to: if is_to_interface { name(packet.target, shared).ifname } else { String::new() },
        stage: said.stage.to_owned(),
        reason: said.reason.to_owned(),
        length: packet.length + tag.as_ref().map_or(0, |tag| tag.len() as u32),
        bare: packet.bare != 0,
        data: match tag {
            Some(tag) => STANDARD.encode([&bytes[..ADDRESSES], &tag, &bytes[ADDRESSES..]].concat()),
            None => STANDARD.encode(bytes),
        },
    }
}

/// The tag beside the bytes, as it is on the wire.
fn tag(packet: &WatchedPacket, bytes: &[u8]) -> Option<[u8; 4]> {
    (packet.tag != 0 && packet.bare == 0 && bytes.len() >= ADDRESSES).then(|| {
        let [low, high] = (packet.tag_protocol as u16).to_ne_bytes();
        let [first, second] = (packet.tag as u16).to_be_bytes();
        [low, high, first, second]
    })
}

/// An interface that the agent does not know yet is asked for.
fn name(ifindex: u32, shared: &Shared) -> Named {
    let known = shared.name(ifindex);
    if !known.ifname.is_empty() {
        return known;
    }
    let found = if_indextoname(ifindex as libc::c_uint);
    Named::interface(
        found.map_or_else(|_| format!("ifindex {ifindex}"), |name| name.to_string_lossy().into_owned()),
    )
}

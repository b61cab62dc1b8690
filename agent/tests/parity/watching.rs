//! The watched build of the programs, which tells what becomes of its packets.

use std::collections::BTreeSet;

use aya::maps::{Array, RingBuf};
use shunt_dataplane::abi::HandedOn;
use shunt_dataplane::abi::watch::{Watch, WatchedPacket};
use zerocopy::FromBytes as _;

use super::loader::{loader, object};
use super::{Kernel, Left};
use crate::golden::bytes_packet::BytesPacket;

/// Everything is told, with as many bytes as headers have.
const ALL: Watch = Watch { verdicts: u32::MAX, snap: 64, most: u32::MAX, only_some: 0 };

impl Kernel {
    /// For drops only, or for every packet.
    pub(crate) fn watched(restricted: u32, is_capturing: bool) -> Self {
        let (mut loader, capturing) = (loader(), u32::from(is_capturing));
        loader.override_global("RESTRICTED", &restricted, true);
        loader.override_global("CAPTURING", &capturing, true);
        let ebpf = loader.load_file(object("shunt-watched.o")).expect("the watched build loads");
        let mut kernel = Self { ebpf, loaded: BTreeSet::new(), handed: HandedOn::default() };
        let mut watch: Array<_, Watch> = kernel.map("WATCH").try_into().expect("WATCH");
        watch.set(0, ALL, 0).expect("what is told");
        kernel
    }

    /// Runs one packet through a program on the interface `here`: what it has left, and what it has told.
    pub(crate) fn watch(
        &mut self,
        program: &'static str,
        here: u32,
        packet: &BytesPacket,
    ) -> (Left, Vec<WatchedPacket>) {
        self.ensure_loaded(program);
        let left = self.test(program, here, packet);
        let mut ring: RingBuf<_> = self.map("WATCHED").try_into().expect("WATCHED");
        let mut told = Vec::new();
        while let Some(record) = ring.next() {
            told.push(WatchedPacket::read_from_prefix(&record).expect("what stands before the bytes").0);
        }
        (left, told)
    }
}

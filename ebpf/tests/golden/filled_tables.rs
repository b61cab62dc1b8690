//! The maps in memory, as the world fills them, and what they have counted.

use std::cell::{Cell, RefCell};

use shunt_dataplane::abi::{Count, PortCounters};

use super::bytes_packet::BytesPacket;
use super::memory_tables::MemoryTables;
use super::{accepted, members, outside, shares, uplinks, world};

/// What the clock of translated connections says unless it is told otherwise.
const BOOT_TIME: u64 = 1_000_000_000_000_000;

impl MemoryTables {
    /// The world's maps. They are filled once on each thread, and copied: a test has thousands.
    pub fn of_world() -> Self {
        thread_local!(static WORLD: MemoryTables = MemoryTables::filled());
        WORLD.with(Self::clone)
    }

    /// The same, for a packet that may meet a full container.
    pub fn for_packet(packet: &BytesPacket) -> Self {
        Self { shares: RefCell::new(shares::for_packet(packet, BOOT_TIME)), ..Self::of_world() }
    }

    fn filled() -> Self {
        Self {
            ports: RefCell::new(world::ports().into_iter().collect()),
            stations: RefCell::new(world::stations().into_iter().collect()),
            nics: uplinks::NICS.into_iter().collect(),
            addresses: RefCell::new(world::addresses().into_iter().collect()),
            link_locals: RefCell::new(world::link_locals(BOOT_TIME).into_iter().collect()),
            members: members::members().into_iter().collect(),
            tagged: members::tagged().into_iter().collect(),
            kernel_flows: RefCell::new(world::kernel_flows().into_iter().collect()),
            kernel_shares: RefCell::new(shares::of_kernel_flows().into_iter().collect()),
            accepted: RefCell::new(accepted::flows(BOOT_TIME).into_iter().collect()),
            heeding: accepted::HEEDING,
            incoming_flows: RefCell::new(
                world::incoming_flows().into_iter().map(|key| (key, BOOT_TIME)).collect(),
            ),
            aliases: RefCell::new(outside::aliases(BOOT_TIME).into_iter().collect()),
            own_claims: RefCell::new(outside::own_claims().into_iter().map(|key| (key, BOOT_TIME)).collect()),
            now: Cell::new(world::NOW),
            mappings: outside::mappings().into_iter().collect(),
            locals: outside::locals().into_iter().collect(),
            masquerades: outside::masquerades().into_iter().collect(),
            outlets: outside::outlets().into_iter().collect(),
            sources: outside::sources(),
            reverse_paths: outside::reverse_paths().into_iter().collect(),
            assured: RefCell::new(outside::assured(BOOT_TIME).into_iter().collect()),
            room: usize::MAX,
            flows: RefCell::new(outside::flows(BOOT_TIME).into_iter().collect()),
            shares: RefCell::new(shares::shares(BOOT_TIME).into_iter().collect()),
            fragments: RefCell::new(outside::fragments(BOOT_TIME).into_iter().collect()),
            boot_time: BOOT_TIME,
            policers: RefCell::new(world::policers().into_iter().collect()),
            subnets: world::subnets(),
            learned: RefCell::new(uplinks::learned(BOOT_TIME).into_iter().collect()),
            uplinks: RefCell::new(uplinks::learning().into_iter().collect()),
            ..Self::default()
        }
    }

    /// Packets counted in all lanes of all slots.
    pub fn counted(&self) -> u64 {
        self.counters
            .borrow()
            .values()
            .map(|c| lanes(c).iter().map(|(_, count)| count.packets).sum::<u64>())
            .sum()
    }
}

/// A port's counters with their names in golden files.
pub fn lanes(counters: &PortCounters) -> [(&'static str, Count); 6] {
    [
        ("from_fast", counters.from_fast),
        ("from_kernel", counters.from_kernel),
        ("from_dropped", counters.from_dropped),
        ("to_fast", counters.to_fast),
        ("to_kernel", counters.to_kernel),
        ("to_dropped", counters.to_dropped),
    ]
}

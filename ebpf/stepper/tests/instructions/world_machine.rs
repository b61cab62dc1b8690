//! The golden world in the maps of the shipped programs.

use std::path::PathBuf;

use shunt_dataplane::abi::watch::Watch;
use shunt_dataplane::abi::{HandedOn, KernelFlow, Marks, Port, PortKey};
use shunt_dataplane::tables::{RouteQuery, Unrouted};
use shunt_dataplane::wire::address::Address;
use stepper::{FIB_LOOKUP_BYTES, FibAnswer, Machine, Object, Outcome, SocketBuffer, Surroundings};
use zerocopy::{Immutable, IntoBytes};

use crate::golden::bytes_packet::BytesPacket;
use crate::golden::case::Case;
use crate::golden::memory_tables::MemoryTables;
use crate::golden::{accepted, members, outside, shares, uplinks, world};

/// The bits of the mark.
const MARKS: Marks = Marks { judged: 0x20, checked: 0x40, outside: 0x1000 };

/// Tag protocols, as they are on the wire.
const VLAN: u16 = 0x8100_u16.to_be();
const SERVICE_VLAN: u16 = 0x88a8_u16.to_be();

/// `PACKET_HOST` and `PACKET_OTHERHOST` of `linux/if_packet.h`.
pub(crate) const PACKET_HOST: u32 = 0;
const PACKET_OTHERHOST: u32 = 3;

/// Of `struct bpf_fib_lookup` (`linux/bpf.h`).
const FAMILY: usize = 0;
const BYTES: usize = 6;
const IFINDEX: usize = 8;
const SOURCE: usize = 16;
const DESTINATION: usize = 32;
const AF_INET: u8 = 2;
const SUCCESS: i64 = 0;
const NOT_FORWARDED: i64 = 4;
const FRAG_NEEDED: i64 = 8;

/// One of the sets of programs.
pub(crate) struct Programs {
    object: Object,
    is_watched: bool,
}

impl Programs {
    pub(crate) fn read(restricted: u32) -> Self {
        Self { object: object("shunt.o", &[("RESTRICTED", restricted)]), is_watched: false }
    }

    /// The build that is attached while somebody watches: drops only, or every packet.
    pub(crate) fn watched(restricted: u32, capturing: u32) -> Self {
        let flags = [("RESTRICTED", restricted), ("CAPTURING", capturing)];
        Self { object: object("shunt-watched.o", &flags), is_watched: true }
    }

    pub(crate) fn run(&self, case: &Case) -> Outcome {
        let surroundings = Kernel { boot_time: MemoryTables::of_world().boot_time };
        let mut machine = Machine::new(&self.object, &surroundings);
        fill(&mut machine, case, surroundings.boot_time);
        if self.is_watched {
            let watch = Watch { verdicts: u32::MAX, snap: 256, most: u32::MAX, only_some: 0 };
            insert(&mut machine, "WATCH", &[(0u32, watch)]);
        }
        if let Some((ifindex, port)) = handed(case) {
            insert(&mut machine, "HANDED_ON", &[(0u32, HandedOn { ifindex, port })]);
        }
        let outcome = machine.run(case.entry.program(), socket_buffer(&case.packet, case.here));
        outcome.unwrap_or_else(|fault| panic!("{}: {fault}", case.name))
    }
}

fn object(name: &str, flags: &[(&str, u32)]) -> Object {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/bpf").join(name);
    assert!(path.exists(), "{} is missing: run `cargo xtask build`", path.display());
    Object::read(&path, flags).unwrap_or_else(|error| panic!("{error}"))
}

/// The port that `from_container` has handed on.
fn handed(case: &Case) -> Option<(u32, Port)> {
    let here = PortKey { ifindex: case.here };
    let (_, port) = world::ports().into_iter().find(|(key, _)| *key == here && case.packet.handed)?;
    Some((case.here, port))
}

fn fill(machine: &mut Machine<'_>, case: &Case, now: u64) {
    insert(machine, "PORTS", &world::ports());
    insert(machine, "FDB", &world::stations());
    insert(machine, "ADDRESSES", &world::addresses());
    insert(machine, "MARKS", &[(0u32, MARKS)]);
    insert(machine, "POLICERS", &world::policers());
    let subnets: Vec<_> = world::subnets()
        .into_iter()
        .map(|(bits, subnet, limited)| ([&bits.to_ne_bytes()[..], subnet.as_bytes()].concat(), limited))
        .collect();
    for (key, limited) in subnets {
        machine.insert("SUBNETS", &key, limited.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
    }
    insert(machine, "LINK_LOCALS", &world::link_locals(now));
    insert(machine, "MAPPINGS", &outside::mappings());
    for (bits, key, local) in outside::locals() {
        let key = [&bits.to_ne_bytes()[..], key.as_bytes()].concat();
        machine.insert("LOCALS", &key, local.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
    }
    insert(machine, "MASQUERADES", &outside::masquerades());
    insert(machine, "OUTLETS", &outside::outlets());
    for (bits, key, source) in outside::sources() {
        let key = [&bits.to_ne_bytes()[..], key.as_bytes()].concat();
        machine.insert("SOURCES", &key, source.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
    }
    insert(machine, "REVERSE_PATHS", &outside::reverse_paths());
    insert(machine, "ASSURED", &outside::assured(now));
    insert(machine, "FLOWS", &outside::flows(now));
    insert(machine, "SHARES", &Vec::from_iter(shares::for_packet(&case.packet, now)));
    insert(machine, "FRAGMENTS", &outside::fragments(now));
    insert(machine, "MEMBERS", &members::members());
    insert(machine, "TAGGED", &members::tagged());
    insert(machine, "LEARNED", &uplinks::learned(now));
    insert(machine, "UPLINKS", &uplinks::learning());
    let flows: Vec<_> = world::kernel_flows().into_iter().map(|key| (key, KernelFlow::default())).collect();
    insert(machine, "KERNEL_FLOWS", &flows);
    insert(machine, "ACCEPTED", &accepted::flows(now));
    insert(machine, "HEEDING", &[(0u32, accepted::HEEDING)]);
    insert(machine, "KERNEL_SHARES", &shares::of_kernel_flows());
    let flows: Vec<_> =
        world::incoming_flows().into_iter().map(|key| (key, KernelFlow { noticed: now })).collect();
    insert(machine, "INCOMING_FLOWS", &flows);
    let flows: Vec<_> =
        outside::own_claims().into_iter().map(|key| (key, KernelFlow { noticed: now })).collect();
    insert(machine, "OWN_CLAIMS", &flows);
    insert(machine, "ALIASES", &outside::aliases(now));
}

fn insert<K: IntoBytes + Immutable, V: IntoBytes + Immutable>(
    machine: &mut Machine<'_>,
    map: &str,
    entries: &[(K, V)],
) {
    for (key, value) in entries {
        machine.insert(map, key.as_bytes(), value.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
    }
}

fn socket_buffer(packet: &BytesPacket, here: u32) -> SocketBuffer {
    let is_ours = packet.bare.is_some() || packet.bytes.get(..6) == Some(&world::mac(here));
    SocketBuffer {
        frame: packet.bytes.clone(),
        protocol: packet.bare.map_or(0, u16::to_be),
        linear: packet.readable,
        ifindex: here,
        ingress_ifindex: packet.origin,
        packet_type: if is_ours { PACKET_HOST } else { PACKET_OTHERHOST },
        mark: if packet.judged { MARKS.judged } else { 0 }
            | if packet.checked { MARKS.checked } else { 0 }
            | if packet.outside { MARKS.outside } else { 0 },
        segment_size: packet.segment_size,
        tag: packet.tag.map(|tag| (if tag.is_service() { SERVICE_VLAN } else { VLAN }, tag.tci())),
    }
}

/// The golden world's routes and clocks.
struct Kernel {
    boot_time: u64,
}

impl Surroundings for Kernel {
    fn monotonic(&self) -> u64 {
        world::NOW
    }

    fn boot_time(&self) -> u64 {
        self.boot_time
    }

    /// The destination's port comes last of `struct bpf_sock_tuple`.
    fn has_socket(&self, answer: &[u8]) -> bool {
        answer.last_chunk().copied().map(u16::from_be_bytes) == Some(outside::SOCKET)
    }

    fn route(&self, mut lookup: [u8; FIB_LOOKUP_BYTES]) -> FibAnswer {
        let is_v4 = lookup[FAMILY] == AF_INET;
        let address = |at: usize| {
            let word = |word: usize| u32::from_ne_bytes(*lookup[at + 4 * word..].first_chunk().unwrap());
            if is_v4 {
                Address::from_v4_word(word(0))
            } else {
                Address::from_v6_words([0, 1, 2, 3].map(word))
            }
        };
        let query = RouteQuery {
            from: u32::from_ne_bytes(*lookup[IFINDEX..].first_chunk().unwrap()),
            source: address(SOURCE),
            destination: address(DESTINATION),
            bytes: u16::from_ne_bytes(*lookup[BYTES..].first_chunk().unwrap()),
        };
        let code = match outside::route(&query) {
            Ok(route) => {
                lookup[IFINDEX..IFINDEX + 4].copy_from_slice(&route.ifindex.to_ne_bytes());
                let next_hop = route.next_hop.octets();
                let next_hop = if is_v4 { &next_hop[12..] } else { &next_hop[..] };
                lookup[DESTINATION..DESTINATION + next_hop.len()].copy_from_slice(next_hop);
                SUCCESS
            }
            Err(Unrouted::NoRoute) => NOT_FORWARDED,
            // In the place of the length is the MTU then.
            Err(Unrouted::TooBig(mtu)) => {
                lookup[BYTES..BYTES + 2].copy_from_slice(&mtu.to_ne_bytes());
                FRAG_NEEDED
            }
        };
        FibAnswer { code, lookup }
    }
}

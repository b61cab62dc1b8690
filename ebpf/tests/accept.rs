//! What others' rules have let through, over time: when a flow is fast, when it is asked for again, and when the agent is asked for it.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod golden;

use golden::memory_tables::MemoryTables;
use golden::world::{self, BRIDGE};
use shunt_dataplane::abi::{
    ACCEPTED_LIBERAL, CHECKED_SEGMENTS, End, FlowKey, HEEDING_EACH_TCP, HEEDING_TCP, Heeding, MAX_ACCEPTED,
    QUESTION_LIBERAL, Question,
};
use shunt_dataplane::stages::accept::{self, Asked};
use shunt_dataplane::stages::read_flow::Flow;
use shunt_dataplane::wire::address::L4Port;

const TCP: u8 = 6;
const UDP: u8 = 17;
const ACK: u8 = 1 << 4;
const LEASE: u64 = 1_000_000_000;

/// A flow between lex and rex, and who asks for it when.
struct World {
    tables: MemoryTables,
    protocol: u8,
}

impl World {
    fn new(protocol: u8, flags: u32) -> Self {
        let heeding = Heeding { lease: LEASE, generation: 5, flags };
        Self { tables: MemoryTables { heeding, ..MemoryTables::of_world() }, protocol }
    }

    fn flow(&self, from: &str) -> Flow {
        let end = |name: &str, port: u16| {
            let place = world::places().find(|place| place.name == name).expect("a place");
            let address = place.addresses().into_iter().next().expect("an address").into();
            End { address, port: L4Port::from(port) }
        };
        let (lex, rex) = (end("lex", 6000), end("rex", 80));
        let source = if from == "lex" { lex.address } else { rex.address };
        let key = FlowKey::of(BRIDGE, self.protocol, lex, rex);
        Flow { key, source, flags: ACK, is_plain: true }
    }

    fn ports(from: &str) -> [u32; 2] {
        let [lex, rex] = ["lex", "rex"].map(world::ifindex);
        if from == "lex" { [lex, rex] } else { [rex, lex] }
    }

    /// A packet has come out of all hooks.
    fn note(&self, from: &str) {
        let slot = world::slot(from);
        accept::note(&Asked { flow: &self.flow(from), ports: Self::ports(from) }, slot, &self.tables);
    }

    fn note_both(&self) {
        self.note("lex");
        self.note("rex");
    }

    /// As many segments as it takes until the agent is asked, or none that do not matter.
    fn note_a_few(&self) {
        self.note_both();
        (0..CHECKED_SEGMENTS).for_each(|_| self.note("lex"));
    }

    fn is_fast(&self, from: &str) -> bool {
        accept::check(&Asked { flow: &self.flow(from), ports: Self::ports(from) }, &self.tables).is_ok()
    }

    fn both_fast(&self) -> [bool; 2] {
        ["lex", "rex"].map(|from| self.is_fast(from))
    }

    fn asked(&self) -> usize {
        self.tables.opened.borrow().len()
    }

    /// What the agent does.
    fn liberate(&self) {
        for Question { flow, wanted } in self.tables.opened.borrow_mut().drain(..) {
            assert_eq!(wanted, QUESTION_LIBERAL);
            self.tables.accepted.borrow_mut().get_mut(&flow).expect("it was noted").flags = ACCEPTED_LIBERAL;
        }
    }

    fn wait(&mut self, time: u64) {
        self.tables.boot_time += time;
    }

    fn change_rules(&mut self) {
        self.tables.heeding.generation += 1;
    }
}

#[test]
fn a_change_of_rules_has_each_direction_asked_for_again() {
    for (protocol, flags) in [(UDP, 0), (TCP, HEEDING_TCP)] {
        let mut world = World::new(protocol, flags);
        world.note_both();
        assert_eq!(world.both_fast(), [true, true]);
        world.change_rules();
        assert_eq!(world.both_fast(), [false, false]);
        world.note("lex");
        assert_eq!(world.both_fast(), [false, false], "nothing of rex's was let through by these rules");
        world.note("rex");
        assert_eq!(world.both_fast(), [true, true]);
        assert_eq!(world.asked(), 0);
    }
}

#[test]
fn a_connection_is_fast_once_tracking_is_liberal_of_it_whatever_the_rules_become() {
    let mut world = World::new(TCP, HEEDING_EACH_TCP);
    world.note_a_few();
    assert_eq!((world.asked(), world.both_fast()), (1, [false, false]));
    world.liberate();
    assert_eq!(world.both_fast(), [true, true]);
    world.change_rules();
    world.note_both();
    assert_eq!((world.asked(), world.both_fast()), (0, [true, true]));
}

#[test]
fn a_connection_of_a_question_and_an_answer_asks_nobody() {
    let world = World::new(TCP, HEEDING_EACH_TCP);
    for _ in 0..100 {
        world.note("lex");
    }
    assert_eq!(world.asked(), 0, "nothing has come back");
    world.note("rex");
    world.note("rex");
    world.note("lex");
    assert_eq!(world.asked(), 0, "that the question has come, an answer, and that it has come");
    world.note("rex");
    assert_eq!(world.asked(), 1);
}

#[test]
fn an_agent_that_does_not_answer_is_asked_again_as_each_lease_begins() {
    let mut world = World::new(TCP, HEEDING_EACH_TCP);
    for _ in 0..100 {
        world.note_both();
    }
    assert_eq!(world.asked(), 1);
    world.wait(LEASE);
    for _ in 0..100 {
        world.note_both();
    }
    assert_eq!(world.asked(), 3);
    assert_eq!(world.both_fast(), [false, false]);
}

#[test]
fn what_is_asked_for_in_vain_is_asked_for_ever_more_seldom() {
    let mut world = World::new(TCP, HEEDING_EACH_TCP);
    world.note_a_few();
    assert_eq!(world.asked(), 1);
    let mut after = Vec::new();
    for lease in 1..=200 {
        world.wait(LEASE);
        let before = world.asked();
        world.note("lex");
        after.extend((world.asked() > before).then_some(lease));
    }
    assert_eq!(after, [1, 2, 4, 8, 16, 32, 64, 96, 128, 160, 192]);
    world.change_rules();
    world.note("rex");
    let before = world.asked();
    world.note("lex");
    assert_eq!(world.asked(), before + 1, "other rules may have another answer");
}

#[test]
fn a_segment_without_acknowledgement_is_the_kernels() {
    let world = World::new(TCP, HEEDING_TCP);
    world.note_both();
    let flow = |flags| Flow { flags, ..world.flow("lex") };
    let is_fast = |flags| {
        accept::check(&Asked { flow: &flow(flags), ports: World::ports("lex") }, &world.tables).is_ok()
    };
    let (fin, syn, reset, push, urgent) = (1, 2, 4, 8, 32);
    for flags in [ACK, ACK | push, ACK | urgent] {
        assert!(is_fast(flags), "{flags:#x}");
    }
    for flags in [0, push, urgent, fin | ACK, syn | ACK, reset | ACK] {
        assert!(!is_fast(flags), "{flags:#x}");
    }
}

#[test]
fn each_direction_has_a_lease_of_its_own_which_nothing_prolongs() {
    let mut world = World::new(UDP, 0);
    world.note("lex");
    world.wait(LEASE / 2);
    world.note_both();
    world.wait(LEASE / 2);
    assert_eq!(world.both_fast(), [false, true]);
    world.note("lex");
    assert_eq!(world.both_fast(), [true, true]);
}

#[test]
fn a_container_takes_a_share_of_the_room_and_its_flows_go_on_beyond_it() {
    let mut world = World::new(UDP, 0);
    world.tables.shares.borrow_mut().clear();
    let noted = |world: &World| world.tables.accepted.borrow().len();
    let before = noted(&world);
    let flood = |world: &World, ports: std::ops::Range<u16>| {
        for port in ports {
            let mut flow = world.flow("lex");
            flow.key.low_port = L4Port::from(port);
            let asked = Asked { flow: &flow, ports: World::ports("lex") };
            accept::note(&asked, world::slot("lex"), &world.tables);
        }
    };
    flood(&world, 10_000..60_000);
    let flooded = noted(&world) - before;
    let quarter = usize::try_from(MAX_ACCEPTED / 4).unwrap();
    assert!((quarter..quarter + 10).contains(&flooded), "{flooded} of a burst are noted");
    world.note("rex");
    assert_eq!(noted(&world) - before, flooded + 1, "another container's share is its own");
    world.wait(LEASE);
    flood(&world, 60_000..60_010);
    assert_eq!(noted(&world) - before, flooded + 11);
}

#[test]
fn without_anybody_to_make_tracking_liberal_nothing_is_noted_of_tcp() {
    let world = World::new(TCP, 0);
    world.note_both();
    assert_eq!((world.asked(), world.both_fast()), (0, [false, false]));
    assert!(!world.tables.accepted.borrow().contains_key(&world.flow("lex").key));
}

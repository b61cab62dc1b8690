//! The shipped programs where things are missing: the machine says so and stops.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::path::PathBuf;

use stepper::{FIB_LOOKUP_BYTES, Fault, FibAnswer, Machine, MapError, Object, SocketBuffer, Surroundings};

struct Nothing;

impl Surroundings for Nothing {
    fn monotonic(&self) -> u64 {
        0
    }

    fn boot_time(&self) -> u64 {
        0
    }

    fn has_socket(&self, _: &[u8]) -> bool {
        false
    }

    fn route(&self, lookup: [u8; FIB_LOOKUP_BYTES]) -> FibAnswer {
        FibAnswer { code: 4, lookup }
    }
}

fn object() -> Object {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/bpf/shunt.o");
    Object::read(&path, &[("RESTRICTED", 0)]).expect("`cargo xtask build` has made the object")
}

#[test]
fn an_interface_that_no_map_knows_is_passed_and_nothing_else_is_asked() {
    let object = object();
    let packet = SocketBuffer { frame: vec![2; 60], linear: 60, ifindex: 9, ..SocketBuffer::default() };
    let outcome = Machine::new(&object, &Nothing).run("from_container", packet.clone()).expect("a run");
    assert_eq!(outcome.action, u32::MAX, "TC_ACT_UNSPEC");
    assert_eq!(outcome.packet, packet);
    assert_eq!(outcome.helpers.get(&1), Some(&1), "PORTS alone: {:?}", outcome.helpers);
}

#[test]
fn a_program_a_map_and_a_constant_that_are_not_there_are_named() {
    let object = object();
    let missing = Machine::new(&object, &Nothing).run("from_nowhere", SocketBuffer::default());
    assert_eq!(missing.unwrap_err(), Fault::Program("from_nowhere".to_owned()));
    let unknown = Machine::new(&object, &Nothing).insert("NOWHERE", &[], &[]).unwrap_err();
    assert!(matches!(unknown, MapError::Unknown(name) if name == "NOWHERE"));
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/bpf/shunt.o");
    assert!(Object::read(&path, &[("NOTHING", 0)]).unwrap_err().to_string().contains("NOTHING"));
}

#[test]
fn entries_of_another_size_are_refused() {
    let object = object();
    let mut machine = Machine::new(&object, &Nothing);
    let refused = machine.insert("PORTS", &[0; 3], &[0; 24]).unwrap_err();
    assert!(matches!(refused, MapError::Refused { error: -22, .. }), "{refused}");
}

//! The frames of each chain of calls fit the stack on every kernel: the newest rounds them less than the oldest, which then refuses what
//! this machine takes.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::path::PathBuf;

use stepper::Object;

/// `MAX_BPF_STACK`.
const STACK: u32 = 512;

#[test]
fn every_chain_of_calls_fits_the_stack_of_the_oldest_kernel() {
    for object in ["shunt.o", "shunt-watched.o", "shunt-decisions.o"] {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/bpf").join(object);
        let read = Object::read(&path, &[]).expect("`cargo xtask build` has made the object");
        let stacks: Vec<(&str, u32)> = read.stacks().collect();
        assert!(stacks.iter().any(|(_, bytes)| *bytes > STACK / 2), "{object}: frames are seen: {stacks:?}");
        let deep: Vec<_> = stacks.iter().filter(|(_, bytes)| *bytes > STACK).collect();
        assert!(deep.is_empty(), "{object}: {deep:?} need more than {STACK} bytes of stack");
    }
}

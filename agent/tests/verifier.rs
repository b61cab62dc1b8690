//! Verifier budget: how much of the verifier's patience each shipped program uses, pinned, so that a change that makes
//! it explode is seen here and not on somebody's older kernel.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test, and its figures with --nocapture"
)]

use std::path::PathBuf;

use aya::EbpfLoader;
use aya::programs::Program;

/// The verifier gives up after a million instructions.
const LIMIT: u32 = 1_000_000;

/// For open ports, of VLAN interfaces and of uplinks: program, instructions that the verifier may walk, bytes of machine code on x86-64.
const OPEN: [(&str, u32, u32); 10] = [
    ("from_container", 28_000, 6_000),
    ("to_container", 50_000, 6_000),
    ("from_host", 20_000, 6_000),
    ("from_mapped", 130_000, 18_000),
    ("from_wire", 150_000, 22_000),
    ("from_vlan", 5_000, 4_000),
    ("from_trunk", 3_000, 3_000),
    ("to_trunk", 2_000, 2_000),
    ("from_uplink", 60_000, 9_000),
    ("to_uplink", 15_000, 5_000),
];

/// On sockets of the node.
const SOCKETS: [(&str, u32, u32); 8] = [
    ("connect4", 2_000, 2_000),
    ("connect6", 2_000, 2_000),
    ("sendmsg4", 2_000, 2_000),
    ("sendmsg6", 2_000, 2_000),
    ("recvmsg4", 500, 1_000),
    ("recvmsg6", 500, 1_000),
    ("getpeername4", 500, 1_000),
    ("getpeername6", 500, 1_000),
];

/// For restricted ports, which have no programs of their own elsewhere.
const RESTRICTED: [(&str, u32, u32); 2] =
    [("from_container", 90_000, 9_000), ("to_container", 50_000, 6_000)];

/// For ports in VLANs, likewise.
const MEMBERS: [(&str, u32, u32); 2] = [("from_container", 100_000, 8_000), ("to_container", 5_000, 2_000)];

#[test]
fn every_program_for_open_ports_keeps_its_verifier_budget() {
    assert_budgets(0, &OPEN);
}

#[test]
fn every_program_for_restricted_ports_keeps_its_verifier_budget() {
    assert_budgets(1, &RESTRICTED);
}

#[test]
fn every_program_for_ports_in_vlans_keeps_its_verifier_budget() {
    assert_budgets(2, &MEMBERS);
}

#[test]
fn every_program_on_sockets_keeps_its_verifier_budget() {
    assert_budgets(0, &SOCKETS);
}

fn assert_budgets(restricted: u32, budgets: &[(&str, u32, u32)]) {
    // Capabilities are the thread's, and every test has its own.
    shunt_agent::privileges::give_up_the_rest().expect("a test that runs as root");
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../target/bpf/shunt.o");
    assert!(path.exists(), "{} is missing: run `cargo xtask build`", path.display());
    let mut loader = EbpfLoader::new();
    loader.override_global("RESTRICTED", &restricted, true).override_global("NETNS", &1u64, true);
    let mut ebpf = loader.load_file(path).expect("the shipped object loads");
    let shipped: Vec<String> = ebpf.programs().map(|(name, _)| name.to_owned()).collect();
    assert_eq!(shipped.len(), OPEN.len() + SOCKETS.len(), "every program has a budget: {shipped:?}");
    for &(name, instructions, code) in budgets {
        let loaded = match ebpf.program_mut(name).expect("a program with a budget") {
            Program::SchedClassifier(program) => program.load().and_then(|()| program.info()),
            Program::CgroupSockAddr(program) => program.load().and_then(|()| program.info()),
            other => panic!("{name}: {other:?}"),
        };
        let info = loaded.unwrap_or_else(|error| panic!("{name}: {error:?}"));
        let walked = info.verified_instruction_count().expect("Linux 5.16 counts what it verified");
        println!("{name}: {walked} instructions walked, {} bytes of machine code", info.size_jitted());
        assert!(walked <= instructions && instructions < LIMIT, "{name}: {walked} of {instructions}");
        assert!(info.size_jitted() <= code, "{name}: {} of {code} bytes", info.size_jitted());
    }
}

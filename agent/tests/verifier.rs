//! Verifier budget: how much of the verifier's patience each shipped program uses, pinned for every kernel of the ladder,
//! so that a change that makes it explode is seen here and not on somebody's older kernel.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "a test")]

#[path = "verifier/record.rs"]
mod record;

use std::path::PathBuf;
use std::thread;

use aya::EbpfLoader;
use aya::programs::Program;
use record::{Budget, Loaded};
use shunt_agent::datapath::loader::uninterrupted;

/// What of the object is loaded for a kind of ports, and the value of `RESTRICTED` that stands for them.
const SETS: [(&str, u32, Which); 3] = [
    // For open ports, of VLAN interfaces and of uplinks, and on the node's sockets.
    ("open", 0, Which::All),
    // These have no programs of their own elsewhere.
    ("restricted", 1, Which::OfRestricted),
    ("members", 2, Which::OfContainers),
];

#[derive(Clone, Copy, PartialEq)]
enum Which {
    All,
    OfContainers,
    OfRestricted,
}

impl Which {
    fn has(self, program: &str) -> bool {
        let is_guard = ["guard_from", "guard_to"].contains(&program);
        match self {
            // Guards are of restricted ports only.
            Self::All => !is_guard,
            Self::OfRestricted if is_guard => true,
            Self::OfContainers | Self::OfRestricted => ["from_container", "to_container"].contains(&program),
        }
    }
}

#[test]
fn every_program_keeps_its_verifier_budget() {
    let loading = SETS
        .map(|(set, restricted, which)| thread::spawn(move || load("shunt.o", set, restricted, which, &[])));
    record::check(loading.into_iter().flat_map(|set| set.join().expect("the set loads")).collect());
}

/// The kernel's limit is a million (`BPF_COMPLEXITY_LIMIT_INSNS`).
#[test]
fn the_watched_programs_keep_far_from_the_verifier_s_limit() {
    for capturing in [0, 1] {
        let loading = SETS.map(|(set, restricted, which)| {
            let flags = [("CAPTURING", capturing)];
            thread::spawn(move || load("shunt-watched.o", set, restricted, which, &flags))
        });
        for (loaded, budget) in loading.into_iter().flat_map(|set| set.join().expect("the set loads")) {
            println!("capturing {capturing} {loaded:?} walked {}", budget.walked);
            assert!(budget.walked < 500_000, "{loaded:?}, capturing {capturing}: {} walked", budget.walked);
        }
    }
}

fn load(
    object: &str,
    set: &'static str,
    restricted: u32,
    which: Which,
    flags: &[(&'static str, u32)],
) -> Vec<(Loaded, Budget)> {
    // Capabilities are the thread's.
    shunt_agent::privileges::give_up_the_rest().expect("a test that runs as root");
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../target/bpf").join(object);
    assert!(path.exists(), "{} is missing: run `cargo xtask build`", path.display());
    let mut loader = EbpfLoader::new();
    loader.override_global("RESTRICTED", &restricted, true).override_global("NETNS", &1u64, true);
    for (name, value) in flags {
        loader.override_global(name, value, true);
    }
    let mut ebpf = loader.load_file(path).expect("the shipped object loads");
    let wanted = ebpf.programs_mut().filter(|(name, _)| which.has(name));
    wanted.map(|(name, program)| ((set.to_owned(), name.to_owned()), budget(name, program))).collect()
}

fn budget(name: &str, program: &mut Program) -> Budget {
    let loaded = match program {
        Program::SchedClassifier(program) => uninterrupted(|| program.load()).and_then(|()| program.info()),
        Program::CgroupSockAddr(program) => uninterrupted(|| program.load()).and_then(|()| program.info()),
        Program::Xdp(program) => uninterrupted(|| program.load()).and_then(|()| program.info()),
        other => panic!("{name} is of another kind: {:?}", other.prog_type()),
    };
    let info = loaded.unwrap_or_else(|error| panic!("{name}: {error:?}"));
    let walked = info.verified_instruction_count().expect("Linux 5.16 counts what it verified");
    Budget { walked, code: info.size_jitted() }
}

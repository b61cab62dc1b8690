//! The object files, and how much room their maps have here.

use std::path::PathBuf;

use aya::EbpfLoader;

/// The hash maps that are emptied and read for every packet. Whoever lists one goes through all its buckets, so these have
/// room for a world and not for a node.
const LISTED: [&str; 22] = [
    "PORTS",
    "FDB",
    "ADDRESSES",
    "LINK_LOCALS",
    "MEMBERS",
    "TAGGED",
    "LEARNED",
    "KERNEL_FLOWS",
    "ACCEPTED",
    "INCOMING_FLOWS",
    "ALIASES",
    "CLAIMS",
    "OWN_CLAIMS",
    "MAPPINGS",
    "LOCALS",
    "MASQUERADES",
    "OUTLETS",
    "REVERSE_PATHS",
    "ASSURED",
    "FLOWS",
    "FRAGMENTS",
    "DROPS",
];
const ROOM: u32 = 1024;

pub(super) fn loader() -> EbpfLoader<'static> {
    let mut loader = EbpfLoader::new();
    // Nothing of the programs depends on the kernel's types, which take long to read.
    loader.btf(None);
    for name in LISTED {
        loader.map_max_entries(name, ROOM);
    }
    loader
}

pub(super) fn object(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../target/bpf");
    let path = folder.join(name);
    assert!(path.exists(), "{} is missing: run `cargo xtask build`", path.display());
    path
}

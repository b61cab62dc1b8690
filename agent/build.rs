//! Puts the objects with the kernel programs where `src/datapath/loader.rs` embeds them from; the watched one is compressed.
//!
//! `$SHUNT_BPF_OBJECT` names another object; a relative path counts from the workspace's root.

use std::path::{Path, PathBuf};
use std::{env, fs, io, process};

use flate2::Compression;
use flate2::write::GzEncoder;

/// Where `cargo xtask build` leaves the object, from the workspace's root.
const BUILT: &str = "target/bpf/shunt.o";

/// And the watched one.
const WATCHED: &str = "target/bpf/shunt-watched.o";

fn main() {
    println!("cargo::rerun-if-env-changed=SHUNT_BPF_OBJECT");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("/"));
    let object =
        root.join(env::var_os("SHUNT_BPF_OBJECT").map_or_else(|| PathBuf::from(BUILT), PathBuf::from));
    let watched = root.join(WATCHED);
    let embedded = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    put(&object, fs::copy(&object, embedded.join("shunt.o")).map(drop));
    put(&watched, compress(&watched, &embedded.join("shunt-watched.o.gz")));
}

fn put(object: &Path, outcome: io::Result<()>) {
    println!("cargo::rerun-if-changed={}", object.display());
    if let Err(error) = outcome {
        println!(
            "cargo::error=the kernel programs are not at {}: {error}; `cargo xtask build` builds them",
            object.display()
        );
        process::exit(1);
    }
}

fn compress(object: &Path, to: &Path) -> io::Result<()> {
    let mut encoder = GzEncoder::new(fs::File::create(to)?, Compression::best());
    io::copy(&mut fs::File::open(object)?, &mut encoder)?;
    encoder.finish().map(drop)
}

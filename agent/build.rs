//! Puts the object with the kernel programs where `src/datapath/loader.rs` embeds it from.
//!
//! `$SHUNT_BPF_OBJECT` names another object; a relative path counts from the workspace's root.

use std::path::{Path, PathBuf};
use std::{env, fs, process};

/// Where `cargo xtask build` leaves the object, from the workspace's root.
const BUILT: &str = "target/bpf/shunt.o";

fn main() {
    println!("cargo::rerun-if-env-changed=SHUNT_BPF_OBJECT");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("/"));
    let object =
        root.join(env::var_os("SHUNT_BPF_OBJECT").map_or_else(|| PathBuf::from(BUILT), PathBuf::from));
    println!("cargo::rerun-if-changed={}", object.display());

    let embedded = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default()).join("shunt.o");
    if let Err(error) = fs::copy(&object, &embedded) {
        println!(
            "cargo::error=the kernel programs are not at {}: {error}; `cargo xtask build` builds them",
            object.display()
        );
        process::exit(1);
    }
}

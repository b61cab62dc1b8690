//! Has a plugin that is linked statically begin with what an ADD and a DEL run (`hot-text.ld`), so that few of its pages are mapped.

use std::env;

const SCRIPT: &str = "hot-text.ld";

fn main() {
    println!("cargo::rerun-if-changed={SCRIPT}");
    let [target, directory] = ["TARGET", "CARGO_MANIFEST_DIR"].map(|name| env::var(name).unwrap_or_default());
    // Other builds are for tests, and linkers other than GNU's and LLVM's do not know such scripts.
    if target.ends_with("-musl") {
        println!("cargo::rustc-link-arg-bins=-Wl,--script={directory}/{SCRIPT}");
    }
}

//! Compiles the protocol's messages and services, without `protoc`.

use std::error::Error;

const FILES: [&str; 4] = ["registration.proto", "dra.proto", "health.proto", "health_alpha.proto"];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=proto");
    let files = protox::compile(FILES, ["proto"])?;
    tonic_prost_build::configure().build_transport(false).compile_fds(files)?;
    Ok(())
}

//! Compiles the service's messages, without `protoc`, and their descriptors for gRPC's reflection.

use std::env;
use std::error::Error;
use std::fs;
use std::path::Path;

use protox::Compiler;

const FILES: [&str; 2] = ["shunt/cni/v1/cni.proto", "cni/cni.proto"];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=proto");
    let mut compiler = Compiler::new(["proto"])?;
    compiler.include_source_info(true).include_imports(true).open_files(FILES)?;
    let out = env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?;
    fs::write(Path::new(&out).join("cni.descriptors"), compiler.encode_file_descriptor_set())?;
    tonic_prost_build::configure().build_transport(false).compile_fds(compiler.file_descriptor_set())?;
    Ok(())
}
